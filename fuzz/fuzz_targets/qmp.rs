//! Any QEMU, which may be in its guest's hand.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::qmp_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
