//! Fuzz target: packed virtio-net rings in arbitrary guest memory (see `packed_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::packed_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
