//! Fuzz target: arbitrary sequences of vhost-user messages (see `vhost_user_oracle`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::vhost_user_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
