//! Fuzz target: LACP with arbitrary frames, link changes and time steps (see `lacp_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::lacp_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
