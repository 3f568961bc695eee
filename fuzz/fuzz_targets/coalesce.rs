//! Fuzz target: receive coalescing of a batch of frames (see `coalesce_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::coalesce_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
