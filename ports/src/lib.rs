//! Port traits: the interfaces between the data and control planes and the host.
//!
//! The crates in `plane` depend on these traits and never name an implementation. The crates in
//! `sys` implement them, `suimond` injects the implementations, and tests inject their own.
//!
//! - [`FrameSource`], [`FrameSink`]: one frame queue each, serviced by the worker that owns the
//!   queue.
//! - [`QueueHost`]: the switch as seen by a device; accepts queues and returns them.
//! - [`DeviceFactory`], [`PortDevice`]: open the device behind a NIC or an uplink.
//! - [`MemberDevices`], [`ControlSocket`]: link state of team members, and LACPDUs that bypass the
//!   switch.
//! - [`ProcessorRuntime`], [`Wait`]: worker threads, their clock and their only blocking call.
//!   [`ProcessorWork`]: work of a worker other than switching frames.
//! - [`DiskQueue`]: requests of a disk's clients. [`DiskQueueHost`]: the storage plane as seen by a
//!   disk device. [`DiskDevices`]: opens the front-ends of disks. [`DiskObserver`]: receives their
//!   notices. [`DiskFile`], [`FileIo`]: an image file, and a worker's I/O on it.
//! - [`DiskClient`]: a disk that another server exports, over a connection.
//! - [`StoreFiles`]: the files of a store, which contain disk images.
//! - [`RedoRecords`]: metadata changes of images that survive the process.
//! - [`SocketFiles`]: stale socket files of earlier processes.
//! - [`StateStore`]: durable keys and values.
//! - [`ClusterStore`]: the store shared by the nodes of a cluster: transactions, watches, leases,
//!   elections.
//! - [`PowerHost`]: frequencies, idle states and energy counters of the host's CPUs.
//! - [`VmHost`], [`Vm`]: start, adopt and control VMs.
//!
//! This crate contains interfaces and plain data only: no I/O, threads or global state.
#![forbid(unsafe_code)]

mod cluster_store;
mod control_socket;
mod detaching;
mod device;
mod disk_client;
mod disk_device;
mod disk_queue;
mod file_io;
mod file_name;
mod flush_failure;
mod kernel_path;
mod link_facts;
mod nbd_server;
mod power;
mod processor;
mod processor_work;
mod queue;
mod redo_record;
mod serving;
mod socket_files;
mod sriov;
mod steering;
mod store;
mod store_files;
#[cfg(feature = "testing")]
pub mod testing;
mod vm_device;
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
pub use detaching::{DetachedQueue, DetachingQueue};
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
    AllocatedExtent, Allocation, DiskOp, DiskOutcome, DiskQueue, DiskQueueHost, DiskRequest,
};
pub use file_io::{
    DiskFile, FileDone, FileFacts, FileId, FileIo, FileIoSource, FileOp, FileSlot, FileTime,
    PayloadPart,
};
pub use file_name::{BadFileName, FILE_NAME_BYTES_MAX, FILE_NAME_PART_BYTES_MAX, FileName};
pub use flush_failure::{FlushFailure, is_transient};
pub use kernel_path::{
    KERNEL_PATH_HEARD_EVERY, KernelPathAddress, KernelPathCounters, KernelPathPort,
    KernelPathState, KernelPathTable,
};
pub use link_facts::{LinkFacts, LinkSpeed};
pub use nbd_server::{
    NbdClient, NbdClientWay, NbdLevel, NbdLimits, NbdNotice, NbdPlace, NbdServerSpec, NbdTcpAccess,
    NbdTlsFiles, NbdUnixAccess, NbdUsage,
};
pub use power::{PowerError, PowerHost};
pub use processor::{
    CpuPlace, Placement, ProcessorBody, ProcessorJoin, ProcessorRuntime, ThreadStart, Wait, Waker,
};
pub use processor_work::{Expects, NoOtherWork, ProcessorWork, ProcessorWorks, Watches};
pub use queue::{FaultKind, FrameSink, FrameSource, PortFault, QueueHost, Sent, Wakeup};
pub use redo_record::{RedoRecord, RedoRecords};
pub use serving::{ServedDevice, Serving};
pub use socket_files::{FileIdentity, LeftSocket, SocketFiles};
pub use sriov::{PfFacts, SriovHost, SriovSupport, VfChange, VfFacts, VfLinkState, VfSettings};
pub use steering::{SteeringRule, SteeringState};
pub use store::{StateStore, StoreError, StoreErrorKind};
pub use store_files::{
    FileStatus, FileUse, STORE_NAMES_MAX, StoreFault, StoreFileError, StoreFiles, StoreSource,
    StoreSpace,
};
pub use suimon_offload::{DeviceFeature, DeviceFeatures, FeatureState, OffloadSwitches};
pub use vm_device::VmDevice;
pub use vm_host::{
    GuestFacts, GuestInterface, GuestSystem, Standby, Vm, VmAccelerator, VmBoot, VmCommand,
    VmDiskKind, VmDiskSpec, VmError, VmErrorKind, VmFacts, VmHost, VmIdentity, VmNicKind,
    VmNicSpec, VmNotice, VmObserver, VmRunState, VmSpec,
};
pub use vm_moving::{SendPhase, SendSpec, SendStatus, VmArrival, VmLayout, VmPlugged};
