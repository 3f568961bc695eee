//! Test doubles of the ports: a store in memory ([`StoreFiles`](crate::StoreFiles)), redo records
//! in memory ([`RedoRecords`](crate::RedoRecords)), rate-limited devices without storage
//! ([`FileIo`](crate::FileIo)), and a file without data ([`DiskFile`](crate::DiskFile)).

mod memory_redo_records;
mod memory_store;
mod null_file;
mod rate_limited_io;

pub use memory_redo_records::MemoryRedoRecords;
pub use memory_store::{MemoryStore, StoreOp};
pub use null_file::NullFile;
pub use rate_limited_io::{RateLimit, RateLimitedIo};
