//! Oracles for fuzzing, shared with the crates' own tests, which include them by
//! path and replay `corpus/` with them.
//!
//! An oracle is written apart from the code it judges, as plainly as possible:
//! it shares no parser and no arithmetic with it.
//!
//! `cargo +nightly fuzz run frame`. What the fuzzer adds to `corpus/` stays
//! local; an input that found a bug is checked in as `corpus/<target>/bug-<what>`.
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
