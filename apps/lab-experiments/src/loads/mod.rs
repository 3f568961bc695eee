//! Setups and load generators shared by several kinds of experiments, one module each.

pub(crate) mod database;
pub(crate) mod ftp;
pub(crate) mod java;
pub(crate) mod lan;
pub(crate) mod vcpus;
pub(crate) mod web;

use crate::requirement::{Requirement, daemon, programs};

/// Returns the requirements of a daemon with namespace guests.
pub(crate) fn lan_requirements() -> Vec<Requirement> {
    [daemon(), programs(&[("ip", "iproute2"), ("curl", "curl"), ("ping", "iputils-ping")])].concat()
}
