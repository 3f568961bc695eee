//! Rings of disks in memory that holds any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::disk_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
