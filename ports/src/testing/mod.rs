//! What tests and measurements of what stands on the ports use: a store in memory
//! ([`StoreFiles`](crate::StoreFiles)), records in memory
//! ([`RedoRecords`](crate::RedoRecords)), devices that keep nothing
//! ([`FileIo`](crate::FileIo)), and a file without bytes ([`DiskFile`](crate::DiskFile)).

mod hollow_file;
mod memory_records;
mod memory_store;
mod paced_io;

pub use hollow_file::HollowFile;
pub use memory_records::MemoryRecords;
pub use memory_store::{MemoryStore, StoreOp};
pub use paced_io::{Pace, PacedDevices};
