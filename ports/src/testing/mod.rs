//! A store in memory and devices that keep nothing, for tests of what stands on
//! [`StoreFiles`](crate::StoreFiles) and [`FileIo`](crate::FileIo).

mod memory_store;
mod paced_io;

pub use memory_store::{MemoryStore, StoreOp};
pub use paced_io::{Pace, PacedDevices};
