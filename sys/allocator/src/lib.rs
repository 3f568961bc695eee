//! Global memory allocator of the daemon: jemalloc with two arenas, which returns free pages to the
//! system.
//!
//! The daemon allocates in its control plane, for API requests and for connections; workers do not
//! allocate per frame or request. With few arenas and small caches per thread, free memory is
//! contiguous, so that whole pages can be returned.
//!
//! A program that links this crate uses the allocator. jemalloc opens files of `/proc` and `/sys`
//! when it starts, which is before the program's threads are confined. Its background thread is
//! disabled, because it would start before the confinement too; the program calls
//! [`return_free_pages`] instead.
//!
//! Source: jemalloc(3), "TUNING" and "MALLCTL NAMESPACE".
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod jemalloc;

pub use jemalloc::return_free_pages;
