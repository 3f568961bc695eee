//! Receive coalescing of a batch of any frames, cut again and compared.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::coalesce_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
