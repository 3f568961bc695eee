//! Integration tests of this crate, one module per subject. A single test program, because linking
//! takes most of a test program's build time.

mod coalesce_corpus;
#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/coalesce_oracle.rs"]
mod coalesce_oracle;
mod frame_corpus;
#[allow(unreachable_pub, dead_code, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/frame_oracle.rs"]
mod frame_oracle;
#[allow(unreachable_pub, dead_code, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/frame_sample.rs"]
mod frame_sample;
#[allow(unreachable_pub, reason = "shared by several crates' tests")]
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;
