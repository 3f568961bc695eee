//! Any QEMU on the stream of a NIC that it emulates.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::stream_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
