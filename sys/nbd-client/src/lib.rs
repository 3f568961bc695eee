//! Disks that somebody else serves over NBD, as a [`DiskClient`](suimon_ports::DiskClient).
//!
//! - [`NbdConnection`]: one connection, on a socket that somebody else has connected.
//!
//! What it does not do: it connects to nobody, does no TLS, and tries nothing again; the
//! protocol's bytes are `formats/nbd`'s.
//!
//! Life of a request
//! ```text
//! caller ──► the book ──► socket         socket ──► thread of replies ──► the book ──► caller
//!            who waits for what                     into the caller's own memory
//! ```
//!
//! Invariants
//! - A caller goes on: it was answered, or the connection has ended. Whoever wants to bound
//!   its patience ends the connection.
//! - What the server sends is never longer than what was asked for, and a few MiB; where it
//!   says something else than was asked for, the connection ends.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod book;
mod connection;
#[cfg(test)]
mod connection_tests;
mod handshake;
mod replies;

pub use connection::NbdConnection;
