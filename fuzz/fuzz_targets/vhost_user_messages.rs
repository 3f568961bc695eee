//! Any sequence of vhost-user messages.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_fuzz::vhost_user_oracle::check;

fuzz_target!(|input: &[u8]| {
    check(input);
});
