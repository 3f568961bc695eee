//! Frequencies, turbo and idle states of CPUs, and energy counters, from and to sysfs.
//!
//! [`PowerFiles`] is [`PowerHost`](suimon_ports::PowerHost) below a root, which is `/sys`
//! unless a test says otherwise. Which files these are: Documentation/admin-guide/pm of the
//! kernel (cpufreq.rst, intel_pstate.rst, amd-pstate.rst, cpuidle.rst) and
//! Documentation/power/powercap/powercap.rst.
//!
//! What it does not do: it decides nothing, remembers nothing and starts no thread. It makes
//! no file: a setting whose file is not there is missing.
//!
//! Lifecycle: each call opens, reads or writes, and closes what it needs.
//!
//! Invariants
//! - What a file says is read as far as a page, the most that sysfs gives, and believed as
//!   far as it can be understood: anything else is as if the file were not there.
//! - Nothing but a regular file is read or written, and nothing outside the root: a pipe or
//!   a device in its place cannot keep the caller waiting.
//! - A value counts as written if the kernel took it; what it made of it is read afterwards.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod cpus;
mod energy;
mod files;
mod power_files;

pub use power_files::PowerFiles;
