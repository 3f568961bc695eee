//! vhost-user: a VM's NIC or disk whose back-end is this process (QEMU,
//! `docs/interop/vhost-user.rst`; virtio 1.3, sections 5.1 and 5.2).
//!
//! - `message`: bytes and descriptors to typed messages and back.
//! - `device`: what each message does to the device's rings, without a socket;
//!   [`Model`]: what is different between a NIC and a disk.
//! - `door`, `connection`: connections to the socket, and the one of a front-end.
//! - `control`: the task that serves a device; `pace`: how many messages it accepts; `served`: both,
//!   while a device is open.
//! - [`VhostUserThreads`]: the threads of these tasks, shared by all devices.
//! - [`VhostUserNic`]: a NIC, a [`PortDevice`](suimon_ports::PortDevice).
//! - [`VhostUserDisk`]: a disk.
//!
//! What it does not do: it moves no frames and answers no requests (the rings' owners do,
//! on their processors) and implements no control queue, postcopy, IOMMU or in-band
//! notification; the latter three are not offered, and a front-end that uses one
//! anyway is cut off. The control queue is served by the front-end: QEMU, Cloud
//! Hypervisor and DPDK's virtio-user all do so. Of its commands we hear by messages how
//! many queue pairs are in use (`SET_VRING_ENABLE`); filters, addresses and the guest's
//! later wishes for offloads have no message, so the switch's configuration decides.
//!
//! Lifecycle of a ring: a front-end describes it (size, addresses, base, kick,
//! enabled); as soon as all of that and the VM's memory are known it is handed to
//! the [`QueueHost`](suimon_ports::QueueHost) or the
//! [`DiskQueueHost`](suimon_ports::DiskQueueHost), which answers every request that it
//! took from a ring before it gives the ring back; it is taken back when it is
//! stopped, disabled or changed, when the memory or the log changes, when any ring
//! of the device meets a fault, and when the front-end leaves. Its position survives in
//! the device and is told to the front-end; if this process dies, it survives in the
//! used ring and in the in-flight record that the front-end keeps.
//!
//! Invariants
//! - A front-end can harm its own VM only. A message that breaks the protocol
//!   ends its connection with a notice that names message and field; the NIC then
//!   waits for the next front-end.
//! - When a front-end is gone, no queue of it is with the host and none of its
//!   memory is mapped.
//! - Whoever connects is noticed when his first message makes sense, and not before.
//!   One front-end at a time; another one is turned away at once.
//! - Features that a VM has negotiated are offered to it again after a
//!   reconnection, also by the next process
//!   ([`VhostUserPromise`](suimon_ports::VhostUserPromise)), whatever was switched
//!   off meanwhile: a guest cannot lose a feature while it runs. What is switched
//!   off is then done in software. A NIC that could not keep this is not opened. The
//!   promise ends when a front-end stops its rings and leaves.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod backend_channel;
mod config_space;
mod connection;
mod control;
mod device;
mod disk;
mod disk_config;
mod door;
mod fault;
mod features;
mod memory_table;
mod message;
mod model;
mod nic;
mod pace;
mod payload;
mod records;
mod reply;
mod request;
mod served;
mod subject;
mod vring;

pub use device::{Device, DeviceLink, Stops};
pub use disk::VhostUserDisk;
pub use fault::DeviceFault;
pub use features::{Offer, protocol};
pub use message::{
    HEADER_BYTES, Header, InflightInfo, LogInfo, Message, MessageError, PAYLOAD_BYTES_MAX,
    RegionInfo, VringFd,
};
pub use model::{DiskModel, Model, NicModel};
pub use nic::VhostUserNic;
pub use reply::Reply;
pub use request::Request;
pub use served::VhostUserThreads;
