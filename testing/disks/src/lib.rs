//! Disks on a processor's thread, over io_uring, exported over NBD and vhost-user: what
//! tests and measurements of disks stand on.
//!
//! - [`DiskProcessor`]: the thread; [`DiskExports`]: its disks, by name.
//! - [`Promises`]: what a VM relies on, kept for the next process.
//! - [`Client`]: a client in this process that never has enough; [`request_cost_ns`]: what
//!   its requests cost a processor.
//! - [`CopiedDisk`], [`ServedCopy`]: a disk that is copied to another one while it is used.
//! - [`StoreFolder`]: makes and opens disks in a directory.
//! - [`FaultyIo`]: I/O that is wrong on purpose, for tests of tests; [`NullIo`]: I/O that
//!   does nothing, for measurements.
//! - `serve-disk`: all of this as a program that can be killed; `verify-disk`: finds lost
//!   and doubled writes, on the host or in a guest.
//!
//! It is no daemon: it has one processor and no configuration.
#![forbid(unsafe_code)]

mod client;
mod copying;
mod engine_cost;
mod exports;
mod fault;
mod null;
mod processor;
mod promises;
mod store_folder;

pub use client::{Answers, Asks, Client, ClientSpec, never_readable};
pub use copying::{CopiedDisk, ServedCopy, used};
pub use engine_cost::{EngineLoad, HeldTo, hollow_client, hollow_disk, request_cost_ns};
pub use exports::DiskExports;
pub use fault::{Fault, FaultyIo};
pub use null::NullIo;
pub use processor::{DiskProcessor, OpenedDisk};
pub use promises::Promises;
pub use store_folder::{StoreFolder, new_disk, seeded};
