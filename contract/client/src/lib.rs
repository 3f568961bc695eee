//! Client of the daemon's REST API, over its Unix socket or over TCP with TLS.
//!
//! One method per endpoint; arguments and results are the types of
//! [`suimon_contract`], which the daemon serves from, so nothing is generated or
//! translated between the two sides.
//!
//! What it does not do: no retries and no waiting for the daemon to appear. An
//! operation that was started goes on in the daemon whether or not anybody waits
//! for it here.
//!
//! Lifecycle: a [`Client`] holds no connection. Every request makes its own, and
//! a stream ([`Follow`], [`Capture`]) keeps its own until it is dropped, which
//! ends it on the daemon's side too.
//!
//! Invariants: no answer, however large or slow, takes memory or time without
//! bound; streams excepted, which last as long as they are wanted.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod arrivals;
mod certificates;
mod client;
mod cluster;
mod console;
mod disks;
mod drain;
mod error;
mod power;
mod resources;
mod stores;
mod stream;
mod token;
mod transport;
mod vms;
mod way;

pub use arrivals::{ArrivalLine, MEMORY_PROTOCOL, NBD_PROTOCOL};
pub use client::{CaptureOptions, Captured, Client, EventQuery};
pub use error::ClientError;
pub use resources::{ChangeOptions, Outcome};
pub use stream::{Capture, Follow};
pub use token::{TOKEN_CHARS_MIN, TokenError, read_token};
pub use way::{CONNECT_TIME, TlsError, TlsReach, notice_death};
