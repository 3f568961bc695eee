//! What several kinds of experiments set up or load with, one file each.

pub(crate) mod ftp;
pub(crate) mod lan;
pub(crate) mod web;

use std::thread;

use crate::experiment::Need;

/// What a suimond with light guests needs.
pub(crate) fn lan_needs() -> Vec<Need> {
    vec![
        Need::Own("suimond"),
        Need::Own("suimon"),
        Need::Program { name: "ip", package: "iproute2" },
        Need::Program { name: "curl", package: "curl" },
        Need::Program { name: "ping", package: "iputils-ping" },
    ]
}

/// The CPU that the guest of that number has to itself or shares with every so manyth.
pub(crate) fn cpu_of(guest: usize) -> usize {
    guest % thread::available_parallelism().map_or(1, usize::from)
}
