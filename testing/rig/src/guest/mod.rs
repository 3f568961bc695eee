//! Real VMs: QEMU with Debian's kernel and a small initramfs.

mod archive;
mod channel;
mod files;
mod kernel;
mod machine;
mod monitor;

pub use files::{GuestFiles, guest_files};
pub use machine::{Accelerator, Guest, GuestNic, GuestSpec, accelerator};
