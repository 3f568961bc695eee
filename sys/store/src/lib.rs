//! Embedded store of one host: durable keys and values in one file.
//!
//! Implements [`suimon_ports::StateStore`] on redb, a copy-on-write B-tree.
//!
//! Outside of the scope: the meaning of values, and history. A damaged file is reported, never
//! repaired or replaced.
//!
//! Life cycle: [`FileStore::open`] locks the directory, creates or opens `state.redb` and verifies
//! all of it; dropping the store releases the lock. After a process was killed, the next `open`
//! continues with the last commit.
//!
//! Invariants
//! - When [`commit`](suimon_ports::StateStore::commit) has returned `Ok`, the whole batch is on
//!   stable storage; after `Err`, none of it is. If the device failed while it wrote its last
//!   bytes, this holds from the next call on, which reverts what may have been stored.
//! - After a failed read or write, usually because of a full disk, the next call reopens the file.
//! - `state.redb` only appears under its name when it is complete, so an empty or truncated file
//!   was damaged by another program.
//! - One process at a time has the directory open.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod errors;
mod file_store;
mod open;

pub use file_store::{
    CHANGES_MAX, FileStore, KEY_BYTES_MAX, TABLE_NAME_BYTES_MAX, VALUE_BYTES_MAX,
};

/// Name of the file in the state directory.
pub const STATE_FILE_NAME: &str = "state.redb";

#[cfg(test)]
mod unwritable_tests;
