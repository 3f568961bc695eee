//! NBD server for disks, over Unix sockets and TCP.
//!
//! - [`NbdServer`]: a listening socket. Each client selects an export in the handshake.
//! - [`UnixAccess`], [`TcpAccess`]: access control; both can change while the server listens.
//! - [`serve_stream`]: serves one client that is already connected.
//! - [`NbdTls`]: certificates that a TCP server presents and requires.
//! - [`NbdHost`]: state shared by servers: exports, the list of connections, and the threads
//!   ([`SocketRuntime`](suimon_socket_runtime::SocketRuntime)), whose number does not depend on the
//!   number of servers and connections.
//! - [`NbdQueue`]: a connection after its handshake, a [`DiskQueue`](suimon_ports::DiskQueue) that
//!   a worker services.
//!
//! Outside of the scope: disks and files. The encoding of the protocol is in `formats/nbd`.
//!
//! Life cycle of a request
//! ```text
//! socket ──► header ──► memory for the payload ──► payload of a write ──► receive
//!                        │ none is free: reading stops                       │
//!                        ▼                                                   ▼
//! socket ◄── reply, with the payload of a read ◄── complete ◄── the worker's I/O
//! ```
//!
//! Invariants
//! - A TCP server requires TLS before anything else, or serves only clients of this host, unless
//!   plaintext access is configured.
//! - A client that sends more than can be processed, or does not read its replies, is not read from
//!   until it catches up: memory of a connection is bounded.
//! - A payload stays in one place between socket and file; only the kernel copies it, apart from
//!   the part received together with a header.
//! - A chunk of memory belongs to one request from the receipt of its header until its reply was
//!   sent.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod access;
mod accounts;
mod client;
mod clients;
mod handshake;
mod handshakes;
mod input;
mod keepalive;
mod output;
mod pool;
mod queue;
#[cfg(test)]
mod queue_tests;
mod relay;
#[cfg(test)]
mod relay_tests;
mod server;
#[cfg(test)]
mod server_tests;
mod slot;
mod ticket;
mod tls;
mod untaken;
mod watch;

pub use access::{TcpAccess, UnixAccess};
pub use accounts::{AccountError, Accounts};
pub use clients::NbdClients;
pub use queue::{NbdQueue, REQUESTS_MAX};
pub use server::{CONNECTIONS_MAX, NbdExports, NbdHost, NbdServer, serve_stream};
pub use tls::{NbdTls, NbdTlsError, TlsFile};
