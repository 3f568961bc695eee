//! Any file as a VHD, and any requests to it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::vhd_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
