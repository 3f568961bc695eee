//! Disks on a worker thread over io_uring, exported over NBD and vhost-user: the common base of
//! tests and measurements of disks.
//!
//! - [`DiskWorker`]: the worker thread; [`DiskExports`]: its disks by name.
//! - [`NegotiatedFeaturesFile`]: features that a VM depends on, stored for the next process.
//! - [`Client`]: a client in this process that always has requests outstanding;
//!   [`request_cost_ns`]: the cost of its requests in the worker.
//! - [`CopiedDisk`], [`ServedCopy`]: copy of a disk to another one while it is in use.
//! - [`StoreFolder`]: creates and opens disks in a directory.
//! - [`FaultyIo`]: I/O with deliberate faults, for tests of tests; [`NullIo`]: I/O that does
//!   nothing, for measurements.
//! - `serve-disk`: these functions as a program that can be killed; `verify-disk`: detects lost and
//!   repeated writes, on the host or in a guest.
//!
//! It has one worker and no configuration, and does not replace the daemon.
#![forbid(unsafe_code)]

mod client;
mod copying;
mod engine_cost;
mod exports;
mod fault;
mod null;
mod promises;
mod store_folder;
mod worker;

pub use client::{Client, ClientSpec, CompletionCounters, RequestPattern, never_readable};
pub use copying::{CopiedDisk, ServedCopy, used};
pub use engine_cost::{
    EngineLoad, QosLimits, hollow_client, hollow_disk, request_cost_ns, shared_request_cost_ns,
};
pub use exports::DiskExports;
pub use fault::{Fault, FaultyIo};
pub use null::NullIo;
pub use promises::NegotiatedFeaturesFile;
pub use store_folder::{StoreFolder, new_disk, seeded};
pub use worker::{DiskWorker, OpenedDisk};
