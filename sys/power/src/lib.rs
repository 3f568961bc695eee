//! Frequencies, turbo and idle states of CPUs, and energy counters, in sysfs.
//!
//! [`PowerFiles`] implements [`PowerHost`](suimon_ports::PowerHost) below a root folder, which is
//! `/sys` except in tests. The files are described in Documentation/admin-guide/pm of the kernel
//! (cpufreq.rst, intel_pstate.rst, amd-pstate.rst, cpuidle.rst) and
//! Documentation/power/powercap/powercap.rst.
//!
//! Outside of the scope: decisions, state and threads. No file is created: a setting without a file
//! is reported as missing.
//!
//! Life cycle: each call opens, reads or writes, and closes the files that it needs.
//!
//! Invariants
//! - At most one page of a file is read, the maximum of sysfs. Contents that cannot be parsed are
//!   treated as a missing file.
//! - Only regular files are read or written: a pipe or device cannot block the caller.
//! - A write succeeds if the kernel accepted the value; the resulting value is read afterwards.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod cpus;
mod energy;
mod files;
mod power_files;

pub use power_files::PowerFiles;
