//! Files of disk images, and io_uring on them.
//!
//! - [`HostFile`]: a file or block device, a [`DiskFile`](suimon_ports::DiskFile), with direct
//!   I/O where the device's alignment permits it.
//! - [`HostStore`]: a directory or block device that contains images, a
//!   [`StoreFiles`](suimon_ports::StoreFiles).
//! - [`UringFileIo`]: a worker's I/O on such files, a [`FileIo`](suimon_ports::FileIo).
//! - [`UringSource`]: creates the file I/O of each worker.
//! - [`PayloadTable`]: locations of the payloads of a queue's requests in memory. Queues fill it;
//!   I/O transfers payloads without a copy.
//!
//! Outside of the scope: image formats, disks and limits, and the order of operations. An operation
//! that depends on another must be submitted after its completion.
//!
//! Life cycle of an operation
//! ```text
//! submit ─┬─► entry in the ring ──kick──► kernel ──► poll_done ──► done
//!         │       ▲                                     │  ▲
//!         │       └── partly done, or needs another ◄───┘  │
//!         │           method (zeros that are written)      │
//!         └─► executed at once, on a file in memory ───────┘
//! ```
//! If the device would be idle, the kernel receives operations before the ring contains all
//! operations of an iteration of the worker. Reads and writes of files in memory (tmpfs) complete
//! in `submit`, without the ring, and without a system call for allocated pages.
//!
//! Invariants
//! - Memory that the kernel accesses is held by the operation until its completion was received,
//!   even if the ring is dropped.
//! - I/O on a file is either always direct or always through the page cache.
//! - Bytes beyond the end of a file read as zeros.
//! - Reading a hole allocates no page, and a file that another process truncates affects only its
//!   own disk.
//! - A ring performs I/O on registered files only and no other operation of io_uring, regardless
//!   of the contents of its memory.
//! - No name leads out of a store, and only regular files are opened in one.
//! - In steady state, no operation of up to 1 MiB allocates memory, except for the buffers in
//!   which the engine's own reads are returned. A worker keeps at most 8 MiB of unused buffers for
//!   payloads whose memory is not aligned.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod aligned;
mod buffers;
mod continuation;
mod copy;
mod direct_alignment;
mod entry;
mod file_io;
#[cfg(test)]
mod file_io_tests;
mod file_system;
mod holes;
mod host_file;
#[cfg(test)]
mod host_file_tests;
mod host_store;
#[cfg(test)]
mod host_store_tests;
mod image_lock;
#[cfg(test)]
mod in_flight_tests;
#[cfg(test)]
mod in_memory_tests;
mod mapped_file;
mod operation;
mod page_set;
mod payload;
mod restrictions;
mod source;
mod store_free_space;
mod synchronous;

pub use file_io::UringFileIo;
pub use host_file::{FileAccess, HostFile};
pub use host_store::{HostStore, HostStores};
pub use payload::{PayloadTable, PayloadUse, Segment};
pub use source::UringSource;
