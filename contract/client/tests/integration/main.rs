//! Integration tests of this crate, one module per subject. One program, because linking
//! takes most of the time that a test program costs.

mod against_a_server;
mod over_tls;
