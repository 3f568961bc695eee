//! Any recording, which anybody may have written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::recording_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
