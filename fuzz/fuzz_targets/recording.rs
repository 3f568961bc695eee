//! Fuzz target: recordings of policies with arbitrary contents (see `recording_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::recording_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
