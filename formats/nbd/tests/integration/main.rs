//! Integration tests of this crate, one module per subject. A single test program, because linking
//! takes most of a test program's build time.

mod client;
mod handshake;
#[allow(unreachable_pub, missing_docs, dead_code, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/nbd_client.rs"]
mod nbd_client;
mod nbd_corpus;
#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/nbd_disk.rs"]
mod nbd_disk;
#[allow(unreachable_pub, missing_docs, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/nbd_oracle.rs"]
mod nbd_oracle;
mod nbd_replies_corpus;
#[allow(unreachable_pub, missing_docs, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/nbd_replies_oracle.rs"]
mod nbd_replies_oracle;
mod peers;
mod properties;
#[allow(unreachable_pub, reason = "shared by several crates' tests")]
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;
mod replies;
mod requests;
#[allow(dead_code, reason = "shared by several tests")]
mod support;
