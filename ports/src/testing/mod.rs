//! Test doubles of the ports: a store in memory ([`StoreFiles`](crate::StoreFiles)), redo records
//! in memory ([`RedoRecords`](crate::RedoRecords)), rate-limited devices without storage
//! ([`FileIo`](crate::FileIo)), and a file without data ([`DiskFile`](crate::DiskFile)).

mod hollow_file;
mod memory_records;
mod memory_store;
mod paced_io;

pub use hollow_file::NullFile;
pub use memory_records::MemoryRedoRecords;
pub use memory_store::{MemoryStore, StoreOp};
pub use paced_io::{RateLimit, RateLimitedIo};
