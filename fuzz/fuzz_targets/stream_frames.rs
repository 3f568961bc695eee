//! Fuzz target: arbitrary bytes of QEMU on the stream socket of an emulated NIC (see
//! `stream_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::stream_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
