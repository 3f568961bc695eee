//! Fuzz target: damaged VHDX images, and requests to them (see `vhdx_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::vhdx_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
