//! vhost-user back-end: NICs and disks of VMs served by this process (QEMU,
//! `docs/interop/vhost-user.rst`; virtio 1.3, sections 5.1 and 5.2).
//!
//! - `message`: parsing of messages and encoding of replies.
//! - `device`: the effect of each message on the device's rings, without a socket; [`DeviceModel`]:
//!   the differences between NICs and disks.
//! - `acceptor`, `connection`: connections to the socket, and the connection of a front-end.
//! - `control`: the task that serves a device; `rate_limits`: its limit on messages; `open_device`:
//!   a device with its socket while it is open.
//! - [`VhostUserThreads`]: the threads of these tasks, shared by all devices.
//! - [`VhostUserNic`]: a NIC, implements [`PortDevice`](suimon_ports::PortDevice).
//! - [`VhostUserDisk`]: a disk.
//!
//! Outside of the scope: the crate moves no frames and completes no requests; the workers that own
//! the rings do. It implements no control queue, postcopy, IOMMU or in-band notifications. The
//! latter three are not offered, and a front-end that uses one anyway is disconnected. The control
//! queue is implemented by the front-end (QEMU, Cloud Hypervisor and DPDK's virtio-user do so). Of
//! its commands, only the number of enabled queue pairs is forwarded (`SET_VRING_ENABLE`). Filters,
//! addresses and later offload changes of the guest have no message; the configuration of the
//! switch applies.
//!
//! Life cycle of a ring
//! - A front-end configures the ring: size, addresses, base, kick, enabled. When all of these and
//!   the VM's memory are known, the ring is handed to the [`QueueHost`](suimon_ports::QueueHost) or
//!   the [`DiskQueueHost`](suimon_ports::DiskQueueHost).
//! - The host completes every request that it took from a ring before it returns the ring.
//! - The ring is detached when it is stopped, disabled or changed, when the memory or the log
//!   changes, when any ring of the device has a fault, and when the front-end disconnects.
//! - The device keeps the ring's position and reports it to the front-end. If this process dies,
//!   the position is in the used ring and in the in-flight record that the front-end keeps.
//!
//! Invariants
//! - A front-end can only harm its own VM. A message that violates the protocol ends its connection
//!   with a notice that names the message and the field; the device then waits for the next
//!   front-end.
//! - After a front-end has disconnected, the host holds none of its queues and none of its memory
//!   is mapped.
//! - A connection is reported only after its first valid message. One front-end is served at a
//!   time; further connections are closed at once.
//! - Features that a VM has negotiated are offered again after a reconnect, also by the next
//!   process ([`NegotiatedFeatures`](suimon_ports::NegotiatedFeatures)), even if they were disabled
//!   meanwhile: a running guest cannot lose a feature. Disabled offloads are then done in software.
//!   A device that cannot offer the features is not opened. The obligation ends when a front-end
//!   stops its rings and disconnects.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod acceptor;
mod backend_channel;
mod config_space;
mod connection;
mod control;
mod device;
mod device_owner;
mod device_tracking;
mod disk;
mod disk_config;
mod fault;
mod features;
mod fields;
mod memory_table;
mod message;
mod model;
mod nic;
mod open_device;
mod payload;
mod peer_limits;
mod rate_limits;
mod received_descriptors;
mod reply;
mod request;
mod vring;

pub use device::{DeviceParameters, RingSet, VhostUserDevice};
pub use disk::VhostUserDisk;
pub use fault::DeviceFault;
pub use features::{FeatureOffer, protocol};
pub use message::{
    FrontEndMessage, HEADER_BYTES, Header, InflightInfo, LogInfo, MessageError, PAYLOAD_BYTES_MAX,
    RegionInfo, VringFd,
};
pub use model::{DeviceModel, DiskModel, NicModel};
pub use nic::VhostUserNic;
pub use open_device::VhostUserThreads;
pub use reply::VhostUserReply;
pub use request::Request;
