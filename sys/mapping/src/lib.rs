//! Guards of mapped files that other processes may truncate: a VM's memory, and disk images in
//! memory.
//!
//! - [`TruncationGuard`]: guards one mapping, and reports whether its file was truncated.
//! - [`truncated_access_count`]: number of accesses in this process beyond the end of such a file.
//!
//! Outside of the scope: mapping files, and access to them.
//!
//! Life cycle: the owner of a mapping creates a guard for it, and drops the guard before it unmaps.
//!
//! Invariants
//! - A page of a guarded mapping that its file no longer has reads as zeros; data written to it is
//!   lost. The guard reports this before the first such access completes.
//! - Any other `SIGBUS` has its previous effect.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod truncation;

pub use truncation::{
    GUARDS_MAX, TruncationGuard, install_truncation_handler, truncated_access_count,
};
