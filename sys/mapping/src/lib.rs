//! Mapped files that others may cut short: a VM's memory, and disk images in memory.
//!
//! - [`CutGuard`]: watches over one mapping, and says whether its file was found too short.
//! - [`cuts`]: how often that happened in this process.
//!
//! What it does not do: it maps nothing itself, and reads and writes nothing.
//!
//! Lifecycle: whoever maps a file makes a guard for it, and drops the guard before it unmaps.
//!
//! Invariants
//! - A page of a guarded mapping that its file no longer has reads as zeros; what is written
//!   to it is lost. The guard says so from before the first such access ends.
//! - Any other `SIGBUS` does what it did before.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod cut_short;

pub use cut_short::{CutGuard, cuts, watch_for_cuts};
