//! TAP devices, packet-socket uplinks, adapters with SR-IOV and network namespaces.
//!
//! Implements the devices behind [`suimon_ports::PortSpec::Tap`] and
//! [`suimon_ports::PortSpec::Uplink`]: [`NetDevices`] opens them, attaches their
//! queues to the switch, watches their links, and tells what an uplink's device does
//! itself.
//!
//! [`NetDevices`] is also what a team asks of its members' devices
//! ([`suimon_ports::MemberDevices`]): sockets for LACPDUs, which see nothing else, and
//! carrier and speed.
//!
//! [`SriovAdapters`] finds adapters with SR-IOV and tells them how many virtual functions
//! to have, and how each is set up.
//!
//! What it does not do: it decides nothing, and forwards nothing but what the kernel is
//! told to move itself ([`NetDevices::set_kernel_paths`]); it makes no
//! namespaces, routes or addresses; it never deletes a device it was not asked
//! to delete.
//!
//! Lifecycle: a device is opened (taken over if it exists), its queues go to
//! the [`suimon_ports::QueueHost`], and a thread shared by all devices listens
//! to the kernel's link messages in each namespace in use. Dropping the device
//! takes the queues back and closes them. A TAP stays until
//! [`NetDevices::remove_tap`].
//!
//! Invariants
//! - Work in another namespace happens on a thread of its own that ends with it;
//!   no other thread ever changes its namespace.
//! - A frame reaches the switch only after
//!   [`Frame::admit`](suimon_frame::Frame::admit).
//! - No allocation and no lock per frame.
//! - A device that is down loses frames, as a real one does; only a device that
//!   is gone ends its queues.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod attributes;
mod bpf;
mod control_filter;
mod control_socket;
mod device_query;
mod ethtool;
mod explain;
mod flow_calls;
mod flow_rules;
mod gather;
mod ioctl;
mod kernel_path;
mod link;
mod namespace;
mod namespace_names;
mod net_devices;
mod netlink;
mod offload;
mod packet_device;
mod packet_queue;
mod packet_socket;
mod raw_socket;
mod speed_notices;
mod sriov;
mod tap;
mod tap_device;
mod tap_queue;
mod watch;
mod watched_link;
mod xdp;

// What is shared with the fuzz targets knows this crate by its name.
#[cfg(test)]
extern crate self as suimon_netdev;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod waiting_tests;

pub use net_devices::NetDevices;
pub use packet_queue::{PacketSink, PacketSource};
pub use sriov::SriovAdapters;
pub use tap_queue::{TapSink, TapSource};
#[cfg(any(test, feature = "on-memory"))]
pub use xdp::XdpOnMemory;
