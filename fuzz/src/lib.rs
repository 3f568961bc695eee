//! Fuzz oracles. The tests of the crates under test include the files by path and replay `corpus/`
//! with them.
//!
//! An oracle is written independently of the code under test, as straightforwardly as possible: it
//! shares no parser and no arithmetic with it.
//!
//! Run a target with `cargo +nightly fuzz run frame`. Inputs that the fuzzer adds to `corpus/`
//! remain local; an input that revealed a defect is committed as `corpus/<target>/bug-<subject>`.
#![forbid(unsafe_code)]

pub mod coalesce_oracle;
pub mod disk_oracle;
pub mod frame_oracle;
pub mod frame_sample;
pub mod guest_image;
pub mod lacp_oracle;
pub mod nbd_client;
pub mod nbd_disk;
pub mod nbd_oracle;
pub mod nbd_replies_oracle;
pub mod packed_oracle;
pub mod qmp_oracle;
pub mod recording_oracle;
pub mod ring_oracle;
pub mod stream_oracle;
pub mod vhd_oracle;
pub mod vhdx_oracle;
pub mod vhost_user_oracle;
pub mod xdp_oracle;
