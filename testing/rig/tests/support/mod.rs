//! Helpers shared by the tests in this folder.
#![allow(unreachable_pub, reason = "a module of several test binaries")]

#[cfg(target_arch = "x86_64")]
pub mod frozen;
#[cfg(target_arch = "x86_64")]
pub mod hijack;
