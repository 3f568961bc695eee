//! Integration tests of this crate, one module per subject. One test program, because linking
//! dominates the build time of a test program.

mod bounds;
mod cluster;
mod experiments;
mod faults;
mod steady;
