//! Any client of a disk that is exported.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::nbd_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
