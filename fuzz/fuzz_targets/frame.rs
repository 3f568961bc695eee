//! Admission, wire form, segmentation and checksums on arbitrary bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::frame_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
