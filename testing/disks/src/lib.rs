//! Disks on a processor's thread, over io_uring, exported over NBD and vhost-user: what
//! tests and measurements of disks stand on.
//!
//! - [`DiskProcessor`]: the thread; [`DiskExports`]: its disks, by name.
//! - [`Promises`]: what a VM relies on, kept for the next process.
//! - [`FaultyIo`]: I/O that is wrong on purpose, for tests of tests; [`NullIo`]: I/O that
//!   does nothing, for measurements.
//! - `serve-disk`: all of this as a program that can be killed; `verify-disk`: finds lost
//!   and doubled writes, on the host or in a guest.
//!
//! It is no daemon: it has one processor and no configuration.
#![forbid(unsafe_code)]

mod exports;
mod fault;
mod null;
mod processor;
mod promises;

pub use exports::DiskExports;
pub use fault::{Fault, FaultyIo};
pub use null::NullIo;
pub use processor::{DiskProcessor, OpenedDisk};
pub use promises::Promises;
