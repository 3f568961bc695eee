//! Disks on a processor: what happens to a request between its queue and the file.
//!
//! [`StorageWork`] is one processor's part: it takes requests from queues
//! ([`DiskQueue`](suimon_ports::DiskQueue)), asks images
//! ([`Image`](suimon_image::Image)) where the bytes are, lets them be moved
//! ([`FileIo`](suimon_ports::FileIo)), and answers. Disks on a store ask Storage QoS
//! ([`suimon_storage_qos`]) when each request may begin.
//!
//! - [`images`]: opens and makes disks of a store; [`jobs`]: checks, resizes, compacts,
//!   converts and merges them; [`measure`]: finds out what a store can do. All are for
//!   control threads.
//! - [`mirror`]: copies a disk in use to another one; [`DirtyMap`]: what has changed meanwhile.
//! - [`StoragePlane`]: all processors' disks, for control threads.
//!
//! What [`StorageWork`] does not do: it owns no thread and never waits (a processor drives it), opens
//! no file, and knows no format, ring or protocol. It decides no limits, and which
//! processor has a store's budget is said by whoever drives all of them
//! ([`StorageWork::set_store_role`]); it carries no mail itself.
//!
//! Life of a request
//! ```text
//! receive ──► its store: now, or later ──► begin
//!
//! begin ───┬─ read, write ──► translate ──► parts ──► all moved ─┬──► answered
//!          │                    ▲    │                           │
//!          │      metadata read ┘    └ layers of parents         │ durable, in a
//!          │                                                     │ dynamic image
//!          ├─ flush ─────────────────────────► commit ◄──────────┘
//!          │                                     └── durable ───────► answered
//!          ├─ status ──► extents of all layers, or of the file ──► told and answered
//!          └─ discard, zeros ──► alone on its disk, if space is freed ──► answered
//! ```
//!
//! Invariants
//! - Each request is answered once, whatever fails.
//! - A flush is answered when everything that was answered before it came is durable.
//! - Of a disk one commit is under way at a time; flushes that come meanwhile share the
//!   next.
//! - Space is freed only when no other request of the disk is under way; those that come
//!   meanwhile wait, and are begun in the order in which they came.
//! - Requests of a disk begin in the order in which they came. Over any window they count
//!   as at most what the disk's maximum allows
//!   ([`Limits::operations_max`](suimon_storage_qos::Limits::operations_max)) and one
//!   request; and, once until it is paid for, what waited when a queue was closed or the
//!   disk suspended. Where several processors use the store, it is what the maximum carries
//!   in [`HELD_MAX`](suimon_storage_qos::HELD_MAX) and while three messages travel besides;
//!   a budget that moves adds nothing to that.
//! - What waits for one disk's maximum keeps no other disk's queue from being read; what
//!   has no room to wait stays in its queue.
//! - A request that its store has no space for is queued if [`FullPolicy`] says so, outside of all other
//!   queues, and repeated from the start. Other requests of the disk go on. Their number is bounded by
//!   the tags of the queues that brought them.
//! - What changes a disk that is copied is marked before its client is answered. What is asked
//!   of a disk for its being copied counts as nobody's of the disk's, and has a place of its own
//!   in its store.
//! - Requests under way are bounded ([`REQUESTS_MAX`]); none costs an allocation once as
//!   many have been under way, unless the image allocates, or is differencing. Those that
//!   wait are bounded by their store
//!   ([`StoreSpec::waiting_max`](suimon_storage_qos::StoreSpec::waiting_max)). Notices are
//!   bounded ([`NOTICES_MAX`]).
#![forbid(unsafe_code)]

#[cfg(test)]
mod at_once_tests;
mod command;
mod commit;
mod detaching;
mod dirty;
#[cfg(test)]
mod dirty_tests;
mod disk;
mod ended;
mod exclusive;
#[cfg(test)]
mod fakes;
mod full;
mod full_moves;
#[cfg(test)]
mod full_tests;
mod gate;
mod held;
mod idle;
#[cfg(test)]
mod idle_tests;
pub mod images;
pub mod inspect;
pub mod jobs;
#[cfg(test)]
mod kinds;
mod latency;
#[cfg(test)]
mod limiting_tests;
mod looking;
mod mail;
pub mod measure;
pub mod mirror;
#[cfg(test)]
mod mirror_qos_tests;
mod mirror_use;
mod notices;
#[cfg(test)]
mod outliving_tests;
mod phases;
mod plane;
mod plane_mirror;
#[cfg(test)]
mod plane_retire_tests;
mod plane_stores;
mod plane_suspend;
#[cfg(test)]
mod plane_suspend_tests;
mod plane_views;
#[cfg(test)]
mod qos_bench;
#[cfg(test)]
mod qos_roles_tests;
#[cfg(test)]
mod qos_tests;
mod queue_key;
mod request;
mod resident;
#[cfg(test)]
mod resident_tests;
mod resolve;
mod respite;
mod rotation;
mod service;
#[cfg(test)]
mod service_tests;
mod slab;
mod stall;
#[cfg(test)]
mod stall_tests;
mod status;
#[cfg(test)]
mod status_tests;
mod store;
mod store_roles;
mod stores;
mod tally;
mod token;
mod told;
mod transfer;
mod unscheduled;
#[cfg(test)]
mod unwatched_tests;
mod work;
#[cfg(test)]
mod work_tests;

pub use dirty::DirtyMap;
pub use disk::{DiskLayer, DiskPlace, DiskSpec, NotAdded};
pub use full::{FULL_RETRY_EVERY, FullPolicy, FullView};
pub use idle::IDLE_AFTER;
pub use latency::Latencies;
pub use mail::StorageMail;
pub use notices::{FAULT_EVERY, FullChange, NOTICES_MAX, StorageNotice};
pub use plane::{PlaneError, StoragePlane};
pub use plane_mirror::copied_disk;
pub use plane_suspend::NotResumed;
pub use plane_views::{DiskView, StoreView};
pub use queue_key::QueueKey;
pub use stall::STALLED_AFTER;
pub use store::{StoreRole, StoreStatus};
pub use tally::{DiskTally, OpTally};
pub use told::PlaneNotice;
pub use work::{REQUESTS_MAX, StorageWork};
