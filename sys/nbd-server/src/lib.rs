//! Disks for NBD clients, over Unix sockets and TCP.
//!
//! - [`NbdServer`]: the socket on which clients come in, if they may. Each says in a
//!   handshake which export it wants.
//! - [`UnixAccess`], [`TcpAccess`]: who may; both can change while the server listens.
//! - [`serve_stream`]: the same for one client that has connected elsewhere.
//! - [`NbdTls`]: what a server over TCP shows to its clients, and wants to be shown.
//! - [`NbdHost`]: what servers share: exports, the list of connections, and the threads
//!   ([`SocketRuntime`](suimon_socket_runtime::SocketRuntime)), whose number does not depend on the
//!   number of servers and connections.
//! - [`NbdQueue`]: its connection from there on, a [`DiskQueue`](suimon_ports::DiskQueue)
//!   that a processor drives.
//!
//! What it does not do: it knows no disk and no file; the protocol's bytes are
//! `formats/nbd`'s.
//!
//! Life of a request
//! ```text
//! socket ──► header ──► memory for the payload ──► payload of a write ──► receive
//!                        │ none is free: nothing more is read                │
//!                        ▼                                                   ▼
//! socket ◄── reply, with the payload of a read ◄── complete ◄── the processor's I/O
//! ```
//!
//! Invariants
//! - Over TCP nothing is answered before TLS, or only clients of this host are served.
//! - A client that sends more than can be worked off, or does not read its replies, is
//!   read from no more until it has: memory of a connection is bounded.
//! - A payload is in one place from socket to file and back; nothing copies it but the
//!   kernel, and what came together with a header.
//! - A chunk of memory belongs to one request from when its header was read until its
//!   reply was sent.
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
