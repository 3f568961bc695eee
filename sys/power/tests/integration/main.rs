//! Integration tests of this crate, one module per subject. A single program, because linking
//! dominates the build time of tests.

mod fake;
mod sysfs;
