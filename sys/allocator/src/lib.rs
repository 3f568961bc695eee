//! Global memory allocator of the daemon: jemalloc with two arenas, which returns free pages to the
//! system.
//!
//! The daemon allocates in its control plane, for API requests and for connections; workers do not
//! allocate per frame or request. Few arenas keep free memory together, so that it can be returned.
//!
//! A program that links this crate uses the allocator. jemalloc opens files of `/proc` and `/sys` when it
//! starts, which is before the program's threads are confined. Its background thread would be started
//! before as well and is not used; [`return_free_pages`] has its task.
//!
//! Source: jemalloc(3), "TUNING" and "MALLCTL NAMESPACE".
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod jemalloc;

pub use jemalloc::return_free_pages;
