//! A store in memory, for tests of what stands on [`StoreFiles`](crate::StoreFiles).

mod memory_store;

pub use memory_store::{MemoryStore, StoreOp};
