//! What the planes need from the world, as traits.
//!
//! `plane` is written against these and never names an implementation; `sys`
//! implements them; `suimond` brings the two together, and tests bring their own.
//!
//! - [`FrameSource`], [`FrameSink`]: one queue each, driven by the one processor
//!   that owns it.
//! - [`QueueHost`]: the switch, as a device sees it: takes queues in, gives them
//!   back.
//! - [`DeviceFactory`], [`PortDevice`]: opens what a NIC or an uplink stands on.
//! - [`MemberDevices`], [`ControlSocket`]: what a team needs of its members' devices
//!   besides: LACPDUs past the switch, carrier and speed.
//! - [`ProcessorRuntime`], [`Wait`]: pinned threads, the clock and the one wait;
//!   [`ProcessorWork`]: what such a thread does beside switching frames.
//! - [`DiskQueue`]: requests of a disk's clients; [`DiskQueueHost`]: the storage plane,
//!   as a disk's device sees it; [`DiskDevices`]: opens what disks are offered by; [`DiskObserver`]: hears of such a device; [`DiskFile`], [`FileIo`]: an image's
//!   file, and a processor's I/O on it.
//! - [`DiskClient`]: a disk that somebody else serves, over a connection.
//! - [`StoreFiles`]: the files of a store, in which images lie.
//! - [`RedoRecords`]: changes of images' metadata that outlive the process.
//! - [`SocketFiles`]: the files of sockets that were left behind.
//! - [`StateStore`]: durable keys and values.
//! - [`ClusterStore`]: what the nodes of a cluster know together: transactions, watches, leases,
//!   elections.
//! - [`PowerHost`]: frequencies, idle states and energy counters of the host's CPUs.
//! - [`VmHost`], [`Vm`]: starts VMs, finds them again, and tells them things.
//!
//! Nothing here does anything; there is no state and no lifecycle but that of
//! the things described.
#![forbid(unsafe_code)]

mod cluster_store;
mod control_socket;
mod device;
mod disk_client;
mod disk_device;
mod disk_queue;
mod file_io;
mod file_name;
mod kernel_path;
mod link_facts;
mod nbd_server;
mod power;
mod processor;
mod processor_work;
mod queue;
mod redo_record;
mod socket_files;
mod sriov;
mod steering;
mod store;
mod store_files;
#[cfg(feature = "testing")]
pub mod testing;
mod vm_host;
mod vm_moving;

pub use cluster_store::{
    ClusterChange, ClusterCommit, ClusterCondition, ClusterElection, ClusterEntry, ClusterLease,
    ClusterLeaseId, ClusterObserver, ClusterStore, ClusterStoreError, ClusterStoreErrorKind,
    ClusterView, ClusterWatch,
};
pub use control_socket::{
    AfterTurn, CONTROL_FRAME_BYTES_MAX, CONTROL_FRAMES_PER_TURN, CONTROL_PAUSE, ControlError,
    ControlFrame, ControlSocket, MemberDevices,
};
pub use device::{
    DeviceError, DeviceErrorKind, DeviceFactory, DeviceNotice, DeviceStatus, PortDevice,
    PortObserver, PortSpec, StreamSpec, TapSpec, UplinkDriver, UplinkSpec, VhostUserMode,
    VhostUserPromise, VhostUserSpec, XdpHook, XdpState,
};
pub use disk_client::{CLIENT_BYTES_MAX, DiskClient, DiskClientError};
pub use disk_device::{
    DiskDevice, DiskDevices, DiskExports, DiskListener, DiskObserver, ExportedDisk,
    VhostUserDiskSpec, VhostUserDiskStatus,
};
pub use disk_queue::{
    AllocatedExtent, Allocation, DetachedQueue, DetachingQueue, DiskOp, DiskOutcome, DiskQueue,
    DiskQueueHost, DiskRequest,
};
pub use file_io::{
    DiskFile, FileDone, FileFacts, FileId, FileIo, FileIoSource, FileOp, FileSlot, FileTime,
    PayloadPart,
};
pub use file_name::{BadFileName, FILE_NAME_BYTES_MAX, FILE_NAME_PART_BYTES_MAX, FileName};
pub use kernel_path::{
    KERNEL_PATH_HEARD_EVERY, KernelPathAddress, KernelPathCounters, KernelPathPort,
    KernelPathState, KernelPathTable,
};
pub use link_facts::{LinkFacts, LinkSpeed};
pub use nbd_server::{
    NbdClient, NbdClientWay, NbdNotice, NbdPlace, NbdServerSpec, NbdTcpAccess, NbdTlsFiles,
    NbdUnixAccess,
};
pub use power::{PowerError, PowerHost};
pub use processor::{
    CpuPlace, Placement, ProcessorBody, ProcessorJoin, ProcessorRuntime, ThreadStart, Wait, Waker,
};
pub use processor_work::{Expects, NoOtherWork, ProcessorWork, ProcessorWorks, Watches};
pub use queue::{FaultKind, FrameSink, FrameSource, PortFault, QueueHost, Sent, Wakeup};
pub use redo_record::{RedoRecord, RedoRecords};
pub use socket_files::{FileIdentity, LeftSocket, SocketFiles};
pub use sriov::{PfFacts, SriovHost, SriovSupport, VfChange, VfFacts, VfLinkState, VfSettings};
pub use steering::{SteeringRule, SteeringState};
pub use store::{StateStore, StoreError};
pub use store_files::{
    FileStatus, FileUse, STORE_NAMES_MAX, StoreFault, StoreFileError, StoreFiles, StoreSource,
    StoreSpace,
};
pub use suimon_offload::{DeviceFeature, DeviceFeatures, FeatureState, OffloadSwitches};
pub use vm_host::{
    GuestFacts, GuestInterface, GuestSystem, Standby, Vm, VmAccelerator, VmBoot, VmCommand,
    VmDevice, VmDiskKind, VmDiskSpec, VmError, VmErrorKind, VmFacts, VmHost, VmIdentity, VmNicKind,
    VmNicSpec, VmNotice, VmObserver, VmRunState, VmSpec,
};
pub use vm_moving::{SendPhase, SendSpec, SendStatus, VmArrival, VmLayout, VmPlugged};
