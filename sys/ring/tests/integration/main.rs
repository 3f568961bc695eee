//! Integration tests of this crate, one module per subject, in one binary to reduce link time.

#[path = "rig/chains.rs"]
mod chains;
mod corpus;
mod crash_points;
#[path = "rig/disk.rs"]
mod disk;
mod disk_crash_points;
mod disk_hostile;
#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/disk_oracle.rs"]
mod disk_oracle;
mod disk_queue;
mod disk_single;
#[allow(unreachable_pub, reason = "public for the fuzz targets")]
#[path = "../../../../fuzz/src/guest_image.rs"]
mod guest_image;
mod hostile;
mod hostile_packed;
mod logged;
mod oracle;
mod packed;
#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/packed_oracle.rs"]
mod packed_oracle;
#[path = "rig/remains.rs"]
mod remains;
#[allow(unreachable_pub, reason = "shared by several crates' tests")]
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;
mod rig;
#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/ring_oracle.rs"]
mod ring_oracle;
mod tails;
