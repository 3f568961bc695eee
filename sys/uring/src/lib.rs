//! Files of disk images, and io_uring on them.
//!
//! - [`HostFile`]: a file or block device, a [`DiskFile`](suimon_ports::DiskFile): past the
//!   page cache where the device's units allow it.
//! - [`HostStore`]: a directory or block device in which images lie, a
//!   [`StoreFiles`](suimon_ports::StoreFiles).
//! - [`UringFileIo`]: a processor's I/O on such files, a [`FileIo`](suimon_ports::FileIo).
//! - [`UringSource`]: gives each processor one of those.
//! - [`PayloadTable`]: where the payloads of a queue's requests lie. Queues fill it, I/O
//!   reads and writes what it points to, without a copy.
//!
//! What it does not do: it knows no image format, no disk and no limit, and decides
//! nothing about order: what must follow something is submitted after that has ended.
//!
//! Life of an operation
//! ```text
//! submit ─┬─► entry in the ring ──kick──► kernel ──► poll_done ──► done
//!         │       ▲                                     │  ▲
//!         │       └── moved in part, or must be done ◄──┘  │
//!         │           otherwise (zeros that are written)   │
//!         └─► carried out at once, on a file in memory ────┘
//! ```
//! The kernel gets operations before all of a round are in the ring, if the device would wait.
//! Reads and writes of files that are memory (tmpfs) end in `submit`, without the ring, and on
//! pages that the file has without a system call.
//!
//! Invariants
//! - Memory that the kernel works on is held by the operation until the kernel has said
//!   that it ended, also if the ring is dropped.
//! - All I/O on a file goes past the page cache, or all of it through it.
//! - Behind the end of a file are zeros.
//! - To read a hole makes no page of it, and a file that others cut short costs nobody but its disk.
//! - A ring does I/O on files it was given, and nothing else of what io_uring can do,
//!   whoever writes into its memory.
//! - No name leads out of a store, and nothing but a regular file is opened in one.
//! - Once operations have been under way, none costs an allocation, unless a payload's
//!   memory is not aligned or bytes come from or go to the engine itself.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod aligned;
mod at_once;
mod copy;
mod entry;
mod facts;
mod file_io;
#[cfg(test)]
mod file_io_tests;
mod holes;
mod host_file;
#[cfg(test)]
mod host_file_tests;
mod host_store;
#[cfg(test)]
mod host_store_tests;
mod image_lock;
#[cfg(test)]
mod in_memory_tests;
mod mapped_file;
mod operation;
mod pages;
mod payload;
mod restrictions;
mod source;
mod store_room;

pub use file_io::UringFileIo;
pub use host_file::{FileAccess, HostFile};
pub use host_store::{HostStore, HostStores};
pub use payload::{PayloadTable, PayloadUse, Piece};
pub use source::UringSource;
