//! Integration tests of this crate, one module per subject. They are one program, because linking
//! takes most of the build time of a test program.

mod absent_workers;
mod array;
mod capability;
mod events;
mod experiments;
mod properties;
mod traps;
mod workers;
