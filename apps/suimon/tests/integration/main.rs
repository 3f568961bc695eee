//! Integration tests of this crate, one module per subject. One program, because linking
//! takes most of the time that a test program costs.

mod command_line;
mod disks;
mod nodes;
mod operations;
mod support;
mod vmq;
