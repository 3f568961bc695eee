//! Fuzz target: arbitrary bytes of an NBD server, received by the client (see
//! `nbd_replies_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::nbd_replies_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
