//! VMs that the daemon starts, tested with third-party components. One module per subject.

mod deaths;
#[allow(dead_code, reason = "a part of it is used here")]
#[path = "../../../../sys/qemu/tests/integration/support/firmware.rs"]
mod firmware;
mod full_stores;
mod guest_agent;
mod legacy;
mod libvirt;
mod lifecycle;
mod moving;
mod moving_shared;
#[path = "../support/site.rs"]
mod site;
