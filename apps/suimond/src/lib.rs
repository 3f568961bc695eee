//! Daemon of one host: the process, its startup and its parts of the host.
//!
//! Combines the store, devices and workers of `sys`, the switching plane and the node, and serves
//! them with `suimond-api`.
//!
//! The crate makes no decisions: the node manages desired state, its changes and events.
//!
//! Lifecycle: [`daemon::run`] opens the store (one daemon per state directory), binds the socket
//! (one daemon per socket), restores the stored desired state, applies the host file if its text is
//! new, serves until SIGTERM or SIGINT, and then closes the ports. SIGHUP reloads the host file.
#![forbid(unsafe_code)]

pub mod cli;
mod confinement;
pub mod daemon;
mod device_factory;
pub mod disk_factory;
pub mod etcd_connector;
#[cfg(feature = "jemalloc")]
mod free_memory;
mod host_file;
mod image_tool;
mod nbd_listener;
mod notify;
pub mod peer_nodes;
mod power_restoration;
mod recorder;
mod remedy;
pub mod socket_files;
pub mod socket_threads;
mod start_settings;
mod unix_socket;
pub mod vm_factory;
mod watchdog;
