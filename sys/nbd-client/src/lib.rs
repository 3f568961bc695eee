//! Client for disks served over NBD, a [`DiskClient`](suimon_ports::DiskClient).
//!
//! - [`NbdConnection`]: one connection, on a socket that the caller has connected.
//!
//! Outside of the scope: connecting, TLS, and retries. The encoding of the protocol is in
//! `formats/nbd`.
//!
//! Life cycle of a request
//! ```text
//! caller ──► the book ──► socket         socket ──► reply thread ──► the book ──► caller
//!            requests in flight                     into the caller's buffer
//! ```
//!
//! Invariants
//! - A caller never blocks longer than until the reply or the end of the connection. A caller with
//!   a time limit ends the connection.
//! - Received data never exceeds the requested length plus a few MiB. An unexpected reply ends the
//!   connection.
//! - A read succeeds only if the server has returned each byte exactly once. Buffers are reused
//!   without clearing them.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod connection;
#[cfg(test)]
mod connection_tests;
mod handshake;
mod in_flight;
mod received;
mod replies;

pub use connection::NbdConnection;
