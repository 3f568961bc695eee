//! eBPF maps, programs and program links (`bpf(2)`), and an assembler for programs.
//!
//! [`load_program`] and [`attach_xdp`] pass a program to the kernel, [`Map`] is memory that
//! programs and this process share, and [`instructions::Assembler`] builds programs at run time.
//!
//! Outside of the scope: what the programs do, hooks other than XDP, and BTF.
//!
//! Invariants
//! - A program or map exists as long as a descriptor of it is open or the kernel uses it. No object
//!   is pinned to a file system.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

pub mod instructions;
mod kernel_objects;

pub use kernel_objects::{
    Map, MapType, ProgramType, XdpHook, attach_xdp, load_program, replace_program,
};
