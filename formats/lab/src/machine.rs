//! Properties of the machine of a run that affect the results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Machine of a run and its background load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineInfo {
    /// CPU model, as reported by the kernel.
    #[serde(rename = "cpu")]
    pub cpu_model: String,
    /// Number of logical CPUs that the measuring process may use.
    pub cpus: usize,
    /// Number of hardware threads of the first core.
    pub threads_per_core: u32,
    /// Total memory of the machine in MiB.
    pub memory_mib: u64,
    /// Hypervisor as named by systemd-detect-virt, or `none`.
    pub virtualization: String,
    /// True if `/dev/kvm` exists.
    pub kvm: bool,
    /// Kernel release, for example `6.1.0-28-amd64`.
    #[serde(rename = "linux")]
    pub kernel_release: String,
    /// Name and version of the distribution.
    pub distribution: String,
    /// Frequency governor of the first CPU; `None` without cpufreq.
    #[serde(rename = "governor")]
    pub cpu_governor: Option<String>,
    /// Git commit from which the measured Suimon was built.
    #[serde(rename = "suimon")]
    pub suimon_commit: String,
    /// First line of the version output of each load generator and measurement program, by program
    /// name.
    #[serde(rename = "tools")]
    pub tool_versions: BTreeMap<String, String>,
    /// Background load before the first repetition.
    #[serde(rename = "noise")]
    pub background_load: BackgroundLoad,
}

/// Background load, measured while the lab runs nothing except this measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BackgroundLoad {
    /// Load average over one minute, before the first repetition.
    pub load_before: f64,
    /// Excess duration of the slowest of 40 equal computations over the median, in percent.
    #[serde(rename = "slowest_percent")]
    pub slowest_excess_percent: f64,
    /// Longest interruption of a thread that only reads the clock, in µs.
    pub longest_gap_us: f64,
    /// CPU time stolen by the hypervisor during the measurement, in percent.
    pub steal_percent: f64,
}
