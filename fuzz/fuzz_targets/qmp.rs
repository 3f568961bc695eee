//! Fuzz target: arbitrary bytes of QEMU, which a guest may control, on a QMP socket (see
//! `qmp_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::qmp_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
