//! Any server of a disk that is copied.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::nbd_replies_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
