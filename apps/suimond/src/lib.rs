//! The daemon of one host: the control plane's outside.
//!
//! Brings the parts together: the store, the devices and the processors of
//! `sys`, the switching plane, the node, and around them the REST API on a Unix
//! socket and, if configured, on TCP with TLS and a token.
//!
//! What it does not do: it decides nothing. Desired state, its changes and its
//! events are the node's; handlers only translate.
//!
//! Lifecycle: [`daemon::run`] opens the store (one daemon per state directory),
//! binds the socket (one daemon per socket), makes the host as it was desired
//! last, applies the host file if its text is new, serves until SIGTERM or
//! SIGINT, and takes its ports down. SIGHUP reads the host file again.
//!
//! Invariants
//! - No handler blocks a thread of the runtime; calls that ask the host run on
//!   threads for such calls.
//! - Every answer that is no success carries an `ErrorBody`.
//! - Without TLS and a token there is no TCP listener but the console's on loopback, where nothing is
//!   told or done for who is not logged in.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
pub mod clusters;
pub mod confinement;
pub mod console;
pub mod daemon;
pub mod device_factory;
pub mod disk_factory;
pub mod far_nodes;
#[cfg(feature = "jemalloc")]
mod free_memory;
mod host_file;
pub mod image_tool;
pub mod lab;
pub mod line;
pub mod metrics;
mod nbd_listener;
pub mod notify;
pub mod pcapng;
mod power_restoration;
mod recorder;
mod remedy;
pub mod server;
pub mod socket_files;
pub mod socket_threads;
pub mod tcp_api;
pub mod unix_socket;
pub mod vm_factory;
mod watchdog;
