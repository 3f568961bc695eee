//! Test doubles and parameters of tests, for this crate and for crates that drive the engine.

pub mod fakes;
pub mod image_kinds;
pub mod requests;
