//! Integration tests of this crate, one module per subject. One test program, because linking
//! dominates the build time of a test program.

mod energy;
mod properties;
