//! Integration tests of this crate, one module per subject. One program, because linking
//! takes most of the time that a test program costs.

mod fake;
mod sysfs;
