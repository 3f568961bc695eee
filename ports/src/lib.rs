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
//! - [`ProcessorRuntime`], [`Wait`]: pinned threads, the clock and the one wait.
//! - [`SocketFiles`]: the files of sockets that were left behind.
//! - [`StateStore`]: durable keys and values.
//!
//! Nothing here does anything; there is no state and no lifecycle but that of
//! the things described.
#![forbid(unsafe_code)]

mod control_socket;
mod device;
mod kernel_path;
mod link_facts;
mod processor;
mod queue;
mod socket_files;
mod store;

pub use control_socket::{
    AfterTurn, CONTROL_FRAME_BYTES_MAX, CONTROL_FRAMES_PER_TURN, CONTROL_PAUSE, ControlError,
    ControlFrame, ControlSocket, MemberDevices,
};
pub use device::{
    DeviceError, DeviceErrorKind, DeviceFactory, DeviceNotice, DeviceStatus, PortDevice,
    PortObserver, PortSpec, TapSpec, UplinkDriver, UplinkSpec, VhostUserMode, VhostUserPromise,
    VhostUserSpec, XdpHook, XdpState,
};
pub use kernel_path::{
    KERNEL_PATH_HEARD_EVERY, KernelPathAddress, KernelPathCounters, KernelPathPort,
    KernelPathState, KernelPathTable,
};
pub use link_facts::{LinkFacts, LinkSpeed};
pub use processor::{
    CpuPlace, Placement, ProcessorBody, ProcessorJoin, ProcessorRuntime, ThreadStart, Wait, Waker,
};
pub use queue::{FaultKind, FrameSink, FrameSource, PortFault, QueueHost, Sent, Wakeup};
pub use socket_files::{FileIdentity, LeftSocket, SocketFiles};
pub use store::{StateStore, StoreError};
pub use suimon_offload::{DeviceFeature, DeviceFeatures, FeatureState, OffloadSwitches};
