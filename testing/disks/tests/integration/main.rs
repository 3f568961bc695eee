//! Integration tests of this crate, one module per subject. A single program, because linking
//! dominates the build time of tests.

mod bench;
mod client;
mod images_peers;
mod limits;
mod many_limits;
mod mirror;
mod nbd_access;
mod nbd_clients;
mod nbd_status;
mod nbd_tls;
mod no_allocation;
mod qemu_deaths;
mod qemu_disks;
#[path = "qemu/served.rs"]
mod served;
mod support;
mod workers;
