//! Oracles for fuzzing, shared with the crates' own tests, which include them by
//! path and replay `corpus/` with them.
//!
//! An oracle is written apart from the code it judges, as plainly as possible:
//! it shares no parser and no arithmetic with it.
#![forbid(unsafe_code)]

pub mod frame_oracle;
pub mod frame_sample;
