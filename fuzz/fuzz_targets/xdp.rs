//! Fuzz target: AF_XDP queues whose rings the kernel changes arbitrarily (see `xdp_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::xdp_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
