//! Test support for image formats: in-memory files, crash simulation, and a sequential driver.

mod compare;
mod crash;
mod disk;
mod file_content;
mod memory_file;

pub use compare::{first_difference, is_filled};
pub use crash::{Crash, WriteOutcome};
pub use disk::{ParentRead, TestDisk};
pub use file_content::FileContent;
pub use memory_file::{LoggedChange, MemoryFile};
