//! Fuzz target: virtio-blk rings in arbitrary guest memory (see `disk_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::disk_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
