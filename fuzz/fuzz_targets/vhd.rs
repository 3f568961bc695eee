//! Fuzz target: an arbitrary file opened as a VHD, and requests to it (see `vhd_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::vhd_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
