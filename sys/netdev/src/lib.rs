//! TAP devices, packet-socket and AF_XDP uplinks, SR-IOV adapters and network namespaces.
//!
//! Implements the devices of [`suimon_ports::PortDeviceSpec::Tap`] and
//! [`suimon_ports::PortDeviceSpec::Uplink`]: [`NetDevices`] opens them, attaches their queues to
//! the switch, monitors their links, and reports an uplink device's features.
//!
//! [`NetDevices`] also implements [`suimon_ports::MemberDevices`] for team members: sockets that
//! carry only LACPDUs and Marker PDUs, and carrier and speed.
//!
//! [`SriovAdapters`] finds adapters with SR-IOV, sets their number of virtual functions, and
//! configures each virtual function.
//!
//! The crate makes no policy decisions. It forwards no frames; the kernel forwards only as
//! configured by [`NetDevices::set_kernel_paths`]. It creates no namespaces, routes or addresses,
//! and deletes a device only on request.
//!
//! Life cycle: a device is opened (taken over if it exists), its queues are attached to the
//! [`suimon_ports::QueueHost`], and one thread shared by all devices receives the kernel's link
//! messages of each namespace in use. Dropping the device detaches and closes the queues. A TAP
//! persists until [`NetDevices::remove_tap`].
//!
//! Invariants
//! - Work in another namespace runs on a separate thread that ends with the work; no other thread
//!   changes its namespace.
//! - A frame reaches the switch only after
//!   [`Frame::validate_ingress`](suimon_frame::Frame::validate_ingress).
//! - No allocation and no lock per frame.
//! - A device that is down loses frames, as a physical one does; only the removal of a device ends
//!   its queues.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod control_socket;
mod device_query;
mod errors;
mod ethtool_monitor;
mod frame_write;
mod kernel_path;
mod link;
mod namespace;
mod namespace_names;
mod net_devices;
mod offload;
mod packet_device;
mod packet_queue;
mod packet_socket;
mod sriov;
mod tap;
mod tap_device;
mod tap_queue;
mod watch;
mod watched_link;
mod xdp;

// Code shared with the fuzz targets refers to this crate by its name.
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
pub use xdp::XdpOnFile;
