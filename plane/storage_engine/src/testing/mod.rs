//! Test doubles and parameters of tests, for this crate and for crates that drive the engine.

pub mod fake_file;
pub mod fake_io;
pub mod fake_queue;
pub mod image_kinds;
pub mod random_numbers;
pub mod requests;
