//! Storage engine of a worker: processing of disk requests from the queue to the file.
//!
//! [`StorageEngine`] is the engine of one worker. It receives requests from queues
//! ([`DiskQueue`](suimon_ports::DiskQueue)), translates disk ranges to file ranges
//! ([`Image`](suimon_image::Image)), submits the I/O ([`FileIo`](suimon_ports::FileIo)) and
//! completes the requests. For a disk on a store, Storage QoS ([`suimon_storage_qos`]) determines
//! when each request is dispatched.
//!
//! [`StorageEngine`] owns no thread and never blocks (a worker drives it), opens no file, and
//! contains no image format, ring or protocol. It sets no limits. Its caller gives the budget of a
//! store ([`SharedBudget`]) to all workers with disks of the store. The images of disks are opened
//! and created by [`suimon_image_files`].
//!
//! - `engine`: the engine's state, its iterations, and notices.
//! - `queue`: polling of queues.
//! - `request`: translation, payload transfer and completion of requests; discards; block status.
//! - `disk`: state of a disk; suspension, counters, and the map of changes during a copy.
//! - `commit`: commits of image metadata, and zeroing of freed space.
//! - `full_store`: requests for which their store has no space.
//! - `scheduling`: dispatch of requests by the schedulers of their stores.
//! - `shared_budget`: budget of a store that several workers use.
//!
//! Life cycle of a request
//! ```text
//! receive ──► its store: now, or later ──► begin
//!
//! begin ───┬─ read, write ──► translate ──► parts ──► all moved ─┬──► completed
//!          │                    ▲    │                           │
//!          │      metadata read ┘    └ layers of parents         │ durable, in a
//!          │                                                     │ dynamic image
//!          ├─ flush ─────────────────────────► commit ◄──────────┘
//!          │                                     └── durable ───────► completed
//!          ├─ status ──► extents of all layers, or of the file ──► reported and completed
//!          └─ discard, zeros ──► no overlapping request, if space is freed ──► completed
//!
//! commit ──► freed space ──► zeroed, beside requests and commits ──► reused
//! ```
//!
//! Invariants
//! - Each request is completed exactly once, even after errors.
//! - A flush completes when all requests that completed before its submission are durable.
//! - A disk has one commit in flight at a time; flushes submitted meanwhile share the next one.
//! - Space is freed only while no overlapping request is in flight. Overlapping requests that are
//!   submitted meanwhile are queued, and processed in order of submission together with the
//!   requests behind them. Other requests of the disk continue.
//! - Writes of a commit between two flushes are in flight together. Freed space is zeroed and
//!   reused after the commit that frees it. No flush waits for the zeroing.
//! - Requests of a disk are dispatched in order of submission. Over any time window, their number
//!   is at most the disk's maximum
//!   ([`Limits::operations_max`](suimon_storage_qos::Limits::operations_max)) plus one request.
//!   When a queue is closed or the disk is suspended, the requests queued at that time are added
//!   once, until they are charged. If several workers use the store, the excess is larger, by the
//!   bound of [`Borrower`](suimon_storage_qos::Borrower).
//! - A worker that does not proceed stops only its own disks. Its grants count as used until it
//!   proceeds. It then declines grants that are older than
//!   [`GRANT_AGE_MAX`](suimon_storage_qos::GRANT_AGE_MAX), except for one request per disk, and
//!   dispatches the requests that it had fetched grants for before.
//! - Requests queued for one disk's maximum do not block other disks' queues. Requests that
//!   cannot be queued remain in their virtqueue or connection.
//! - A request for which its store has no space is queued if [`FullStorePolicy`] permits it,
//!   separately from all other queues, and repeated from the start. Other requests of the disk
//!   continue. The number of such requests is bounded by the tags of the queues that brought them.
//! - A change of a disk that is being copied is marked ([`DirtyMap`]) before its completion.
//!   Requests of the copy are not counted for the disk, and use a separate slot in the store's
//!   scheduler.
//! - The number of requests in flight is bounded ([`REQUESTS_MAX`]). A request allocates no
//!   memory if the same number of requests was in flight before, unless the image allocates or is
//!   differencing. Queued requests are bounded by their store
//!   ([`StoreSpec::waiting_max`](suimon_storage_qos::StoreSpec::waiting_max)), and notices by
//!   [`NOTICES_MAX`].
#![forbid(unsafe_code)]

mod commit;
mod disk;
mod engine;
mod full_store;
mod queue;
mod request;
mod scheduling;
mod shared_budget;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use commit::idle::IDLE_AFTER;
pub use disk::counters::{DiskIoCounters, OpCounters};
pub use disk::dirty_map::DirtyMap;
pub use disk::latency::{LatencyHistogram, LatencyPercentiles};
pub use disk::qos_slot::StoreDiskSlot;
pub use disk::rejected::RejectedDisk;
pub use disk::stall::STALLED_AFTER;
pub use engine::notices::{FAULT_NOTICE_INTERVAL, NOTICES_MAX, SpaceChange, StorageNotice};
pub use engine::{REQUESTS_MAX, StorageEngine};
pub use full_store::queueing::FULL_STORE_RETRY_INTERVAL;
pub use full_store::{FullStorePolicy, FullStoreView};
pub use queue::QueueKind;
pub use request::NoSpaceRequests;
pub use scheduling::store::status::{StoreRole, WorkerStoreStatus};
pub use shared_budget::SharedBudget;
pub use shared_budget::changes::add_pending_change;
pub use shared_budget::state::ABSENT_AFTER;
