//! Integration tests of this crate, one module per subject. A single program, because linking
//! dominates the build time of tests.

mod bench;
mod corpus;
mod disk_device;
mod front_end;
mod hostile_files;
mod many;
#[allow(unreachable_pub, reason = "shared by several crates' tests")]
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../ring/tests/integration/rig/disk.rs"]
mod requests;
mod resilience;
mod resumption;
#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/vhost_user_oracle.rs"]
mod vhost_user_oracle;

// Modules of the ring's tests that are compiled here refer to these names.
use bench::rig;
