//! Integration tests, one module per subject. A single program reduces link time.

mod command_line;
mod disks;
mod nodes;
mod operations;
mod support;
mod vmq;
