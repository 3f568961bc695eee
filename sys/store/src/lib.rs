//! The embedded store of one host: durable keys and values in one file.
//!
//! Implements [`suimon_ports::StateStore`] on redb, a copy-on-write B-tree.
//!
//! What it does not do: it knows nothing of what the values mean, keeps no
//! history, and repairs nothing by forgetting: a damaged file is reported, never
//! replaced.
//!
//! Lifecycle: [`FileStore::open`] locks the directory, makes or opens
//! `state.redb` and verifies all of it; dropping the store releases the lock. A
//! process that was killed needs nothing: the next `open` goes back to the last
//! commit.
//!
//! Invariants
//! - When [`commit`](suimon_ports::StateStore::commit) has returned `Ok`, the
//!   whole batch is on stable storage; after `Err`, none of it is. If the device
//!   failed while it was writing its last bytes, that holds from the next call on,
//!   which takes back what may be there.
//! - A read or write that failed, for want of room as a rule, ends nothing: the
//!   next call opens the file again.
//! - `state.redb` appears under its name only complete, so a file that is empty
//!   or cut was damaged by somebody else.
//! - One process at a time has the directory open.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod explain;
mod file_store;
mod open;

pub use file_store::{CHANGES_MAX, FileStore, KEY_BYTES_MAX, TABLE_BYTES_MAX, VALUE_BYTES_MAX};

/// The file's name inside the state directory.
pub const FILE_NAME: &str = "state.redb";
