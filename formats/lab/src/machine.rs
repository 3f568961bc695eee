//! What a run was made on, as far as it matters to figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A machine, and how quiet it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// As the kernel names it.
    pub cpu: String,
    /// Logical CPUs that this process may use.
    pub cpus: usize,
    /// Of the first core.
    pub threads_per_core: u32,
    /// All of it.
    pub memory_mib: u64,
    /// `none`, or the hypervisor as systemd-detect-virt names it.
    pub virtualization: String,
    /// Whether there is `/dev/kvm`.
    pub kvm: bool,
    /// The kernel's release.
    pub linux: String,
    /// With its version.
    pub distribution: String,
    /// The governor of the first CPU's frequency; none if there is no cpufreq.
    pub governor: Option<String>,
    /// Suimon's commit.
    pub suimon: String,
    /// Programs that load or measure, with the first line of what they say of their version.
    pub tools: BTreeMap<String, String>,
    /// How quiet it was before the first part.
    pub noise: Noise,
}

/// How much of a CPU somebody else had while the lab did nothing but count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Runnable threads before the first part, the mean of the last minute.
    pub load_before: f64,
    /// The slowest of 40 equal pieces of work beside the median, in percent more.
    pub slowest_percent: f64,
    /// How long the worst interruption of a thread that only reads the clock was, in µs.
    pub longest_gap_us: f64,
    /// CPU time that a hypervisor gave to others meanwhile, in percent.
    pub steal_percent: f64,
}
