//! Ports: NICs, uplinks, host NICs of switches, and the forwarding tables of the switches.
//!
//! - [`key`], [`desired`], [`topology`]: identity, devices and forwarding tables that a
//!   configuration requires.
//! - [`table`], [`devices`], [`negotiated_features`]: existing ports, their open devices and the
//!   features that guests rely on.
//! - [`claims`], [`created_objects`], [`created_records`]: host resources that devices hold, and
//!   TAPs and socket files that the daemon created.
//! - [`steps`], [`retry`]: steps of a change, and retry of failed devices.
//! - [`notices`], [`texts`]: reports of devices and of the switching plane, and their events.
//! - [`status`]: status in the API's types.
//! - [`assigned_addresses`], [`bound_addresses`], [`reached_by_uplink`]: addresses of NICs.
//! - [`kernel_path`]: frames that the kernel forwards between TAPs.
//! - [`switch_plane`]: interface to the switching plane.

mod assigned_addresses;
mod bound_addresses;
mod claims;
mod created_objects;
mod created_records;
mod desired;
mod devices;
mod kernel_path;
mod key;
mod negotiated_features;
mod notices;
mod queue_names;
mod reached_by_uplink;
mod retry;
mod status;
mod steps;
mod switch_plane;
mod table;
mod texts;
mod topology;

pub(crate) use self::assigned_addresses::assign_addresses;
pub(crate) use self::bound_addresses::BoundAddresses;
#[cfg(test)]
pub(crate) use self::claims::created_tap;
pub(crate) use self::claims::{created_socket, exclusive_resource};
pub(crate) use self::desired::{
    RequiredPorts, find_using_switch, required_ports, required_teams, uplink_spec,
};
pub(crate) use self::devices::Devices;
pub(crate) use self::kernel_path::PublishedKernelPaths;
pub use self::key::PortKey;
pub use self::queue_names::QueueSide;
pub(crate) use self::queue_names::queue_name;
pub(crate) use self::steps::{PortStep, PortUndo, add_port_resources, port_steps};
pub use self::switch_plane::{FrameCapture, SwitchPlane, placements};
pub(crate) use self::table::{Port, PortTable};
pub(crate) use self::texts::{device_error, port_failed_event};
pub(crate) use self::topology::{PlaneIds, member_id, smallest_mtu, topology};
