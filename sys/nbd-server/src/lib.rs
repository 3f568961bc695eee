//! NBD server for disks, over Unix sockets and TCP.
//!
//! - [`NbdServer`]: a listening socket. Each client selects an export in the handshake.
//! - [`UnixAccess`], [`TcpAccess`]: access control; both can change while the server listens.
//! - [`serve_stream`]: serves one client that is already connected.
//! - [`NbdTls`]: certificates that a TCP server presents and requires.
//! - [`NbdServerContext`]: state shared by servers: exports, the list of connections, their limits
//!   ([`NbdAccounting`]), and the threads
//!   ([`SocketRuntime`](suimon_socket_runtime::SocketRuntime)), whose number does not depend on the
//!   number of servers and connections.
//! - [`NbdQueue`]: a connection after its handshake, a [`DiskQueue`](suimon_ports::DiskQueue)
//!   that a worker services.
//!
//! Outside of the scope: disks and files. The encoding of the protocol is in `formats/nbd`.
//!
//! Life cycle of a request
//! ```text
//! socket ──► header ──► memory for the payload ──► payload of a write ──► receive
//!                        │ none is left: reading stops                       │
//!                        ▼                                                   ▼
//! socket ◄── reply, with the payload of a read ◄── complete ◄── the worker's I/O
//! ```
//!
//! Invariants
//! - A TCP server requires TLS before anything else, or serves only clients of this host, unless
//!   plaintext access is configured.
//! - If a client sends more than can be processed, or does not read its replies, the server does
//!   not read from it until this changes. The memory of a connection is bounded, as is that of all
//!   connections of an export, of a peer and of the host ([`NbdAccounting`]).
//! - If the limits permit no more memory for a request, it is processed in parts, in the memory
//!   reserved for its connection. No request fails for lack of memory, and no connection waits for
//!   memory of another one.
//! - A payload stays in one place between socket and file; only the kernel copies it, apart from
//!   the part received together with a header.
//! - A chunk of memory belongs to one request from the receipt of its header until its reply was
//!   sent.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod access;
mod accounting;
mod accounts;
mod admission;
mod client;
mod clients;
#[cfg(test)]
mod descriptor_tests;
mod handshake;
mod in_flight_request;
mod input;
mod keepalive;
mod limit_level;
mod memory;
#[cfg(test)]
mod memory_tests;
mod negotiations;
mod origin;
mod output;
mod part_requests;
#[cfg(test)]
mod part_requests_tests;
mod pool;
mod queue;
mod queue_resources;
#[cfg(test)]
mod queue_tests;
mod relay;
#[cfg(test)]
mod relay_tests;
mod replies;
mod requests;
mod server;
mod server_context;
#[cfg(test)]
mod server_tests;
mod split_request;
mod tls;
#[cfg(test)]
mod tls_tests;
mod unread;
mod watch;

pub use access::{TcpAccess, UnixAccess};
pub use accounting::{ConnectionAccount, NbdAccounting};
pub use accounts::{AccountError, Accounts};
pub use clients::NbdClients;
pub use limit_level::{LimitExceeded, NbdScope, RESERVED_BYTES};
pub use queue::{NbdQueue, REQUESTS_MAX};
pub use server::{NbdServer, serve_stream};
pub use server_context::{NbdExports, NbdServerContext};
pub use tls::{NbdTls, NbdTlsError, TlsFile};
