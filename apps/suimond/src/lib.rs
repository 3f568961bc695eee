//! Daemon of one host: control plane interfaces and startup.
//!
//! Combines the store, devices and workers of `sys`, the switching plane and the node, and serves
//! the REST API on a Unix socket and, if configured, on TCP with TLS and a token.
//!
//! The crate makes no decisions: the node manages desired state, its changes and events. Handlers
//! only translate.
//!
//! Lifecycle: [`daemon::run`] opens the store (one daemon per state directory), binds the socket
//! (one daemon per socket), restores the stored desired state, applies the host file if its text is
//! new, serves until SIGTERM or SIGINT, and then closes the ports. SIGHUP reloads the host file.
//!
//! Invariants
//! - No handler blocks a thread of the async runtime. Calls to the host run on threads for blocking
//!   calls.
//! - Every unsuccessful response carries an `ErrorBody`.
//! - A TCP listener requires TLS and a token, except that of the console, which is bound to
//!   loopback and serves logged-in users only.
#![forbid(unsafe_code)]

pub mod access;
pub mod api;
pub mod cli;
pub mod clusters;
pub mod confinement;
pub mod console;
pub mod daemon;
pub mod device_factory;
pub mod disk_factory;
#[cfg(feature = "jemalloc")]
mod free_memory;
mod host_file;
pub mod image_tool;
pub mod lab;
pub mod line;
mod listeners;
pub mod metrics;
mod nbd_listener;
pub mod notify;
pub mod pcapng;
pub mod peer_nodes;
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
