//! VMs that attach over vhost-user, tested with third-party components. One module per subject.

#[path = "../../../../sys/vhost-user/tests/integration/bench/mod.rs"]
mod bench;
mod control_queue;
mod failover;
mod hostile_vms;
mod source_addresses;
#[allow(unreachable_pub, dead_code, reason = "a module of several test binaries")]
#[path = "../support/streams.rs"]
mod streams;
mod survival;
mod virtual_machines;
