//! Client of the daemon's REST API, over its Unix socket or over TCP with TLS.
//!
//! One method per endpoint. Arguments and results are the types of [`suimon_contract`], which the
//! daemon uses too, so the client needs no generated code and no conversion.
//!
//! Outside of the scope: retries, and waiting for the daemon to start. A started operation
//! continues in the daemon whether or not a client waits for it.
//!
//! Life cycle: a [`Client`] holds no connection. Every request uses a separate one. A stream
//! ([`JsonLineStream`], [`CaptureStream`]) keeps its connection until it is dropped, which ends it
//! in the daemon too.
//!
//! Invariants: the memory and time for a response are bounded, regardless of its size and speed.
//! Streams are an exception: they last until they are dropped.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod captures;
mod certificates;
mod client;
mod cluster;
mod console;
mod disks;
mod drain;
mod error;
mod events;
mod host;
mod incoming_migrations;
mod operations;
mod power;
mod query;
mod resources;
mod stores;
mod stream;
mod token;
mod transport;
mod transport_stream;
mod vms;

pub use captures::{CapturablePort, CaptureOptions};
pub use client::Client;
pub use error::ClientError;
pub use events::EventQuery;
pub use incoming_migrations::{MEMORY_PROTOCOL, MigrationStreamKind, NBD_PROTOCOL};
pub use resources::{ChangeOptions, ChangeOutcome};
pub use stream::{CaptureStream, JsonLineStream};
pub use token::{TOKEN_CHARS_MIN, TokenError, read_token};
pub use transport_stream::{CONNECT_TIMEOUT, TlsEndpoint, TlsError, enable_keepalive};
