//! Control of the disks of all workers, for control threads.
//!
//! - [`StoragePlane`] controls the storage engines of the workers
//!   ([`StorageEngine`](suimon_storage_engine::StorageEngine)): disks, their queues, and stores. It
//!   sends commands to the workers and waits for their replies for a bounded time.
//! - [`mirror`] copies a disk in use to another one;
//!   [`DirtyMap`](suimon_storage_engine::DirtyMap) records changes during the copy.
//! - [`measure`] measures the capacity of a store. The images of disks are opened and created by
//!   [`suimon_image_files`].
//!
//! Modules of the control: `plane` (handle of all disks, their stores and workers), `command`
//! (commands to a worker, and waiting for replies), `worker` (execution of the commands on the
//! worker, beside the iterations of its engine).
//!
//! Invariants
//! - A worker never waits for a control thread. It executes its commands in order.
//! - A command to a worker that does not respond fails after a bounded time, and leaves a disk
//!   neither lost nor served twice.
#![forbid(unsafe_code)]

mod command;
pub mod measure;
pub mod mirror;
mod plane;
mod sync;
mod worker;

pub use command::queue_key::QueueKey;
pub use plane::StoragePlane;
pub use plane::error::{AddDiskError, PlaneError};
pub use plane::mirroring::disk_of_copy;
pub use plane::notices::PlaneNotice;
pub use plane::suspension::ResumeDiskError;
pub use plane::views::VIEW_WAIT_MAX;
pub use worker::snapshot::{DiskView, StoreView};
