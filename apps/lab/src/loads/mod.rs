//! Programs that load what is measured, as people trust them; one file each.

pub(crate) mod database;
pub(crate) mod ftp;
pub(crate) mod java;
pub(crate) mod vcpus;
