//! Fuzz target: split virtio-net rings in arbitrary guest memory (see `ring_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::ring_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
