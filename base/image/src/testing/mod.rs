//! Files in memory, what a crash leaves of them, and a disk that is driven one request at
//! a time: what tests of every format need.

mod compare;
mod crash;
mod disk;
mod memory_file;

pub use compare::{first_difference, is_filled};
pub use crash::{Crash, Fate};
pub use disk::{ParentRead, TestDisk};
pub use memory_file::{FileOp, MemoryFile};
