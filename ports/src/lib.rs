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
//! - [`WorkerRuntime`], [`WaitSet`]: worker threads, their clock and their only blocking call.
//!   [`WorkerTask`]: work of a worker other than switching frames.
//! - [`DiskQueue`]: requests of a disk's clients. [`DiskQueueHost`]: the storage plane as seen by a
//!   disk device. [`DiskDeviceFactory`]: opens the front-ends of disks. [`DiskObserver`]: receives
//!   their notices. [`DiskFile`], [`FileIo`]: an image file, and a worker's I/O on it.
//! - [`DiskClient`]: a disk that another server exports, over a connection.
//! - [`StoreFiles`]: the files of a store, which contain disk images.
//! - [`RedoRecords`]: metadata changes of images that survive the process.
//! - [`SocketFiles`]: stale socket files of earlier processes.
//! - [`StateStore`]: durable keys and values.
//! - [`ClusterKvStore`]: the store shared by the nodes of a cluster: transactions, watches, leases,
//!   elections.
//! - [`PowerHost`]: frequencies, idle states and energy counters of the host's CPUs.
//! - [`VmHost`], [`Vm`]: start, adopt and control VMs.
//!
//! This crate contains interfaces and plain data only: no I/O, threads or global state.
#![forbid(unsafe_code)]

mod cluster_store;
mod control_socket;
mod detaching_queue;
mod device;
mod disk_client;
mod disk_device;
mod disk_queue;
mod file_io;
mod file_name;
mod flush_failure;
mod kernel_path;
mod link_properties;
mod nbd_server;
mod power;
mod queue;
mod redo_record;
mod served_device;
mod socket_files;
mod sriov;
mod state_store;
mod steering;
mod store_files;
#[cfg(feature = "testing")]
pub mod testing;
mod vm_device;
mod vm_host;
mod vm_migration;
mod worker;
mod worker_task;

pub use cluster_store::{
    ClusterChange, ClusterCommitResult, ClusterCondition, ClusterElectionResult, ClusterEntry,
    ClusterKvStore, ClusterLease, ClusterLeaseId, ClusterObserver, ClusterStoreError,
    ClusterStoreErrorKind, ClusterView, ClusterWatch,
};
pub use control_socket::{
    CONTROL_FRAME_BYTES_MAX, CONTROL_FRAMES_PER_CALL_MAX, CONTROL_RECEIVE_PAUSE, ControlError,
    ControlFrame, ControlSocket, MemberDevices, NextReceive,
};
pub use detaching_queue::{CompletedDetachment, DetachingQueue};
pub use device::{
    DeviceError, DeviceErrorKind, DeviceFactory, DeviceNotice, DeviceStatus, NegotiatedFeatures,
    PortDevice, PortDeviceSpec, PortObserver, StreamNicSpec, TapSpec, UplinkDriver, UplinkSpec,
    VhostUserMode, VhostUserNicSpec, XdpHook, XdpState,
};
pub use disk_client::{DISK_CLIENT_REQUEST_BYTES_MAX, DiskClient, DiskClientError};
pub use disk_device::{
    DiskDevice, DiskDeviceFactory, DiskExports, DiskObserver, ExportedDisk, NbdListener,
    VhostUserDiskSpec, VhostUserDiskStatus,
};
pub use disk_queue::{
    Allocation, AllocationExtent, DiskOp, DiskOutcome, DiskQueue, DiskQueueHost, DiskRequest,
};
pub use file_io::{
    DiskFile, FileCompletion, FileId, FileIo, FileIoFactory, FileProperties, FileRequest, FileSlot,
    FileTime, PayloadRange,
};
pub use file_name::{FILE_NAME_BYTES_MAX, FILE_NAME_PART_BYTES_MAX, FileName, FileNameError};
pub use flush_failure::{FlushFailure, is_transient};
pub use kernel_path::{
    KERNEL_PATH_REPORT_INTERVAL, KernelPathAddress, KernelPathCounters, KernelPathPort,
    KernelPathState, KernelPathTable,
};
pub use link_properties::{LinkProperties, LinkSpeed};
pub use nbd_server::{
    NbdAddress, NbdClient, NbdLevelUsage, NbdLimits, NbdNotice, NbdServerSpec, NbdTcpAccess,
    NbdTlsFiles, NbdTransport, NbdUnixAccess, NbdUsage,
};
pub use power::{PowerError, PowerHost};
pub use queue::{
    ArmResult, FaultKind, FrameSink, FrameSource, QueueFault, QueueHost, TransmitResult,
};
pub use redo_record::{RedoRecord, RedoRecords};
pub use served_device::{ServedDevice, ServedDeviceCell};
pub use socket_files::{FileIdentity, SocketFiles, StaleSocket};
pub use sriov::{
    PfProperties, SriovHost, SriovSupport, VfLinkState, VfProperties, VfSettings, VfSettingsChange,
};
pub use state_store::{StateStore, StateStoreError, StateStoreErrorKind};
pub use steering::{SteeringRule, SteeringState};
pub use store_files::{
    FileLockMode, FileStatus, STORE_NAMES_MAX, StoreFault, StoreFileError, StoreFiles,
    StoreIdentity, StoreOpener, StoreSpace,
};
pub use suimon_offload::{DeviceFeature, DeviceFeatures, FeatureState, OffloadToggles};
pub use vm_device::VmDevice;
pub use vm_host::{
    GuestInfo, GuestInterface, GuestSystem, NicStandbyState, RunningVmStatus, Vm, VmAccelerator,
    VmBoot, VmCommand, VmDiskKind, VmDiskSpec, VmError, VmErrorKind, VmHost, VmIdentity, VmNicKind,
    VmNicSpec, VmNotice, VmObserver, VmRunState, VmSpec,
};
pub use vm_migration::{
    MigrationRequirements, MigrationSpec, MigrationStatus, MigrationTransferPhase, PluggedDevice,
    VmHardware,
};
pub use worker::{
    CpuAffinity, CpuTopology, ThreadInit, WaitSet, Waker, WorkerJoin, WorkerMain, WorkerRuntime,
};
pub use worker_task::{ExpectedInput, NoTasks, TaskDescriptors, WorkerTask, WorkerTaskFactory};
