//! Setups and load generators shared by several kinds of experiments, one module each.

pub(crate) mod database;
pub(crate) mod ftp;
pub(crate) mod java;
pub(crate) mod lan;
pub(crate) mod vcpus;
pub(crate) mod web;

use crate::experiment::Need;

/// Returns the requirements of a daemon with namespace guests.
pub(crate) fn lan_needs() -> Vec<Need> {
    vec![
        Need::Own("suimond"),
        Need::Own("suimon"),
        Need::Program { name: "ip", package: "iproute2" },
        Need::Program { name: "curl", package: "curl" },
        Need::Program { name: "ping", package: "iputils-ping" },
    ]
}
