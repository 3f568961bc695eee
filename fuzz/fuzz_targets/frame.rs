//! Fuzz target: ingress validation, wire format, segmentation and checksums of one frame (see
//! `frame_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::frame_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
