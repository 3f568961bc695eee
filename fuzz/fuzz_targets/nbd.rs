//! Fuzz target: arbitrary bytes of an NBD client, received by the server (see `nbd_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::nbd_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
