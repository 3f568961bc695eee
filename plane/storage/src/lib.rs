//! Storage engine of a worker: processing of disk requests from the queue to the file.
//!
//! [`StorageEngine`] is the engine of one worker. It receives requests from queues
//! ([`DiskQueue`](suimon_ports::DiskQueue)), translates disk ranges to file ranges
//! ([`Image`](suimon_image::Image)), submits the I/O ([`FileIo`](suimon_ports::FileIo)) and
//! completes the requests. For a disk on a store, Storage QoS ([`suimon_storage_qos`]) determines
//! when each request is dispatched.
//!
//! - [`measure`] measures the capacity of a store, for control threads. The images of disks are
//!   opened and created by [`suimon_image_files`].
//! - [`mirror`] copies a disk in use to another one; [`DirtyMap`] records changes during the
//!   copy.
//! - [`StoragePlane`] controls the disks of all workers, for control threads.
//!
//! [`StorageEngine`] owns no thread and never blocks (a worker drives it), opens no file, and
//! contains no image format, ring or protocol. It sets no limits. Its caller gives the budget of a
//! store ([`SharedBudget`]) to all workers with disks of the store.
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
//! - A request for which its store has no space is queued if [`FullPolicy`] permits it,
//!   separately from all other queues, and repeated from the start. Other requests of the disk
//!   continue. The number of such requests is bounded by the tags of the queues that brought them.
//! - A change of a disk that is being copied is marked before its completion. Requests of the
//!   copy are not counted for the disk, and use a separate slot in the store's scheduler.
//! - The number of requests in flight is bounded ([`REQUESTS_MAX`]). A request allocates no
//!   memory if the same number of requests was in flight before, unless the image allocates or is
//!   differencing. Queued requests are bounded by their store
//!   ([`StoreSpec::waiting_max`](suimon_storage_qos::StoreSpec::waiting_max)), and notices by
//!   [`NOTICES_MAX`].
#![forbid(unsafe_code)]

#[cfg(test)]
mod at_once_tests;
mod budget_pending;
mod budget_state;
mod closing;
mod command;
mod commit;
#[cfg(test)]
mod commit_tests;
mod detaching;
mod dirty;
#[cfg(test)]
mod dirty_tests;
mod disk;
mod disk_location;
mod disk_record;
mod dispatch;
mod ended;
mod engine;
mod exclusion;
#[cfg(test)]
mod fakes;
mod flush_failure;
#[cfg(test)]
mod flush_failure_tests;
mod freeing;
#[cfg(test)]
mod freeing_tests;
mod full;
mod full_moves;
#[cfg(test)]
mod full_qos_tests;
mod full_store;
#[cfg(test)]
mod full_tests;
mod idle;
mod idle_look;
#[cfg(test)]
mod idle_tests;
#[cfg(test)]
mod kinds;
mod last_view;
mod late_disks;
mod latency;
mod layer;
#[cfg(test)]
mod limiting_tests;
mod looking;
mod lost_time;
pub mod measure;
pub mod mirror;
#[cfg(test)]
mod mirror_qos_tests;
mod mirror_use;
mod not_added;
mod notices;
mod offer;
#[cfg(test)]
mod outliving_tests;
mod parked;
mod passing;
mod pending_changes;
mod pending_free;
mod phases;
mod plane;
#[cfg(test)]
mod plane_blocked_tests;
#[cfg(test)]
mod plane_commands_tests;
mod plane_error;
mod plane_images;
mod plane_mirror;
mod plane_notices;
#[cfg(test)]
mod plane_retire_tests;
#[cfg(test)]
mod plane_stalled_tests;
mod plane_store;
mod plane_stores;
mod plane_suspend;
#[cfg(test)]
mod plane_suspend_tests;
mod plane_views;
mod probe;
#[cfg(test)]
mod qos_bench;
#[cfg(test)]
mod qos_roles_tests;
#[cfg(test)]
mod qos_tests;
mod queue_key;
mod queue_state;
mod queued_list;
mod request;
mod resident;
#[cfg(test)]
mod resident_tests;
mod resolve;
mod respite;
mod rotation;
mod running_commit;
mod service;
#[cfg(test)]
mod service_tests;
mod shared_budget;
mod slab;
mod spare;
mod spare_look;
mod stall;
#[cfg(test)]
mod stall_tests;
#[cfg(test)]
mod stalled_worker_tests;
mod status;
#[cfg(test)]
mod status_tests;
mod store;
mod store_roles;
mod store_status;
mod stores;
mod tally;
mod token;
mod transfer;
mod unscheduled;
#[cfg(test)]
mod unwatched_tests;
mod waits;
mod work;
#[cfg(test)]
mod work_tests;
mod worker_channel;
mod worker_view;
mod zeroing;

pub use budget_state::ABSENT_AFTER;
pub use dirty::DirtyMap;
pub use disk_location::DiskLocation;
pub use engine::{REQUESTS_MAX, StorageEngine};
pub use full::FULL_RETRY_EVERY;
pub use full_store::{FullPolicy, FullView};
pub use idle::IDLE_AFTER;
pub use latency::Latencies;
pub use not_added::NotAdded;
pub use notices::{FAULT_NOTICE_INTERVAL, FullChange, NOTICES_MAX, StorageNotice};
pub use plane::StoragePlane;
pub use plane_error::{NotServed, PlaneError};
pub use plane_mirror::copied_disk;
pub use plane_notices::PlaneNotice;
pub use plane_suspend::NotResumed;
pub use plane_views::VIEW_WAIT_MAX;
pub use queue_key::QueueKey;
pub use shared_budget::SharedBudget;
pub use stall::STALLED_AFTER;
pub use store_status::{StoreRole, WorkerStoreStatus};
pub use tally::{DiskIoCounters, OpCounters};
pub use worker_view::{DiskView, StoreView};
