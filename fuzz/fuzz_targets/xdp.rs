//! AF_XDP queues whose kernel does anything at all.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::xdp_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
