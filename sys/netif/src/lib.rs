//! Kernel interfaces for network devices: netlink, ethtool, ioctls and packet sockets.
//!
//! - [`netlink`]: link messages of rtnetlink(7), read from notifications. [`rtnetlink`]: requests
//!   that change devices. [`attributes`]: encoding of netlink messages and attributes, used by
//!   both.
//! - [`ethtool`]: features and link speed over generic netlink. [`ioctl`], [`flow_calls`]: requests
//!   that the kernel offers only as ioctls. [`flow_rules`]: encoding of the latter.
//! - [`raw_socket`]: packet sockets. [`control_filter`]: their filters for LACPDUs and Marker PDUs.
//!
//! Outside of the scope: ports and queues; `sys/netdev` implements them with this crate.
//!
//! Invariants
//! - No content of a message from the kernel causes a panic or an unbounded loop.
//! - Calls apply to the network namespace of the calling thread.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

pub mod attributes;
pub mod control_filter;
pub mod ethtool;
pub mod flow_calls;
pub mod flow_rules;
pub mod ioctl;
pub mod netlink;
pub mod raw_socket;
pub mod rtnetlink;
