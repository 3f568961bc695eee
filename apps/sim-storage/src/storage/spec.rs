//! Scenarios of kind `storage`.

use serde::Deserialize;
use suimon_quantity::Iops;
use suimon_sim_kernel::{FigurePurpose, InvalidKeys, SECOND_NS};
use suimon_storage_qos::{Limits, Normalization, Weight};

use crate::cluster::{Clock, ClusterSpec};
use crate::storage::array::ArraySpec;
use crate::storage::client::LoadSpec;

/// Storage scenario: array, nodes, disks and steps.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageScenario {
    pub(crate) name: String,
    #[expect(dead_code, reason = "it was looked at before")]
    kind: String,
    /// Description of the scenario for readers of the file.
    #[expect(dead_code, reason = "for readers of the file")]
    about: String,
    pub(crate) seed: u64,
    /// Length in s of the initial part of each step that is excluded from means.
    pub(crate) settle_s: u64,
    /// Largest delay of timers in µs.
    #[serde(rename = "timer_late_us")]
    pub(crate) timer_delay_max_us: u64,
    pub(crate) array: ArraySpec,
    #[serde(rename = "capability")]
    pub(crate) capacity: CapacitySpec,
    pub(crate) node: Vec<NodeSpec>,
    /// Cluster; nodes are independent if absent.
    pub(crate) cluster: Option<ClusterSpec>,
    pub(crate) clients: Vec<ClientsSpec>,
    pub(crate) step: Vec<StepSpec>,
    pub(crate) swarm: Option<SwarmSpec>,
    #[serde(rename = "calibrate")]
    pub(crate) calibration: Option<CalibrationSpec>,
}

/// Parameters of the measurement of the array's capacity, in which the demand of the clients is
/// unlimited and no scheduler is used.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CapacitySpec {
    /// Queue depth of each client.
    pub(crate) depth: u32,
    /// Initial time in s that is excluded, in which the cache fills.
    pub(crate) settle_s: u64,
    pub(crate) seconds: u64,
}

/// Node in a scenario file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeSpec {
    pub(crate) name: String,
    /// Offset in s of the node's clock from the time of the run.
    #[serde(default)]
    pub(crate) clock_ahead_s: u64,
    /// Drift of the node's clock in parts per million.
    #[serde(default)]
    pub(crate) clock_ppm: i32,
}

impl NodeSpec {
    pub(crate) const fn clock(&self) -> Clock {
        Clock { offset_ns: self.clock_ahead_s * SECOND_NS, drift_ppm: self.clock_ppm }
    }
}

/// Equal clients on one node, each with its own disk.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientsSpec {
    pub(crate) names: Vec<String>,
    /// Name of the node.
    pub(crate) node: String,
    pub(crate) load: LoadSpec,
}

/// Step of a scenario with its changes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepSpec {
    pub(crate) name: String,
    pub(crate) seconds: u64,
    #[serde(default)]
    #[serde(rename = "set")]
    pub(crate) limit_changes: Vec<LimitsSpec>,
    #[serde(default)]
    pub(crate) figure: Vec<FigureSpec>,
}

/// Limits of disks set in a step.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsSpec {
    /// Disks: `VM01..VM05`, one name, or `all`.
    pub(crate) disks: String,
    #[serde(default)]
    pub(crate) min_iops: u64,
    #[serde(default)]
    pub(crate) max_iops: u64,
    #[serde(default)]
    pub(crate) weight: Option<u16>,
}

/// Published figure with an expectation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureSpec {
    pub(crate) disks: String,
    /// Published value as stated in the document.
    pub(crate) published: String,
    #[serde(rename = "use")]
    pub(crate) purpose: FigurePurpose,
    #[serde(rename = "expect")]
    pub(crate) expectation: Expectation,
}

/// Expectation for a published figure. Rates are normalised operations per second of 8 KiB, as in
/// the published experiments.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Expectation {
    /// Expected rate of each disk.
    #[serde(rename = "each")]
    EachDisk { iops: u64, within_percent: u64 },
    /// Upper limit of each disk's rate.
    #[serde(rename = "each-below")]
    EachDiskBelow { iops: u64 },
    /// Upper limit of the sum of rates.
    SumBelow { iops: u64 },
    /// Largest relative difference between disks.
    Equal { within_percent: u64 },
    /// The rate of each disk is higher than in another step.
    Above { step: String },
    /// The rate of each disk is lower than in another step.
    Below { step: String },
    /// Each disk has 95 % of the rate in every window of 2 s, at the latest from `seconds` after
    /// the start of the step.
    ReachedWithin { iops: u64, seconds: u64 },
    /// Percentage of the array's capacity that all disks together use.
    #[serde(rename = "used")]
    CapacityUsed { percent: u64 },
    /// A notice about rejected minimums is emitted within this time in s after the start of the
    /// step.
    #[serde(rename = "refused")]
    MinimumsRejected { within_s: u64 },
    /// The first notice about an unmet minimum of one of the disks is emitted `seconds` after the
    /// start of another step, within a tolerance of `within_s`.
    #[serde(rename = "told-after")]
    UnmetNoticeAfter { step: String, seconds: u64, within_s: u64 },
}

/// Numbers of random events in swarm runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwarmSpec {
    pub(crate) seconds: u64,
    /// Largest number of faults in a run.
    pub(crate) faults: u64,
    /// Largest number of changes of limits and loads.
    pub(crate) changes: u64,
    /// Largest minimum in normalised operations per second.
    pub(crate) min_iops: u64,
    /// Time in s after a fault in which no minimum is evaluated.
    pub(crate) recovery_s: u64,
    /// Largest number of faults of the cluster.
    #[serde(default)]
    pub(crate) cluster_faults: u64,
    /// Time in s after a fault of the cluster within which changes made during the fault may take
    /// effect late.
    #[serde(default)]
    pub(crate) cluster_recovery_s: u64,
}

/// Unknown parameter and the target of its calibration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalibrationSpec {
    /// Name of the parameter; only `array.drive.media_mb_s` is supported.
    pub(crate) parameter: String,
    /// Lowest value according to the manual.
    pub(crate) low: u32,
    /// Highest value according to the manual.
    pub(crate) high: u32,
    /// Target rate of the array in normalised operations per second.
    pub(crate) target_iops: u64,
}

/// Disk of the scenario, with its node and the load of its client.
#[derive(Clone, Debug)]
pub(crate) struct PlacedDisk<'s> {
    pub(crate) name: &'s str,
    pub(crate) node: usize,
    pub(crate) load: &'s LoadSpec,
}

impl LimitsSpec {
    /// Returns the limits as used by the policy.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            min_iops: Iops::new(self.min_iops),
            max_iops: Iops::new(self.max_iops),
            weight: self.weight.and_then(Weight::new).unwrap_or_default(),
            ..Limits::default()
        }
    }
}

impl StorageScenario {
    /// Returns all disks in order.
    pub(crate) fn disks(&self) -> Vec<PlacedDisk<'_>> {
        let node_of = |clients: &'_ ClientsSpec| {
            self.node.iter().position(|node| node.name == clients.node).unwrap_or_default()
        };
        let placed = self.clients.iter().flat_map(|clients| {
            let node = node_of(clients);
            clients.names.iter().map(move |name| PlacedDisk { name, node, load: &clients.load })
        });
        placed.collect()
    }

    /// Returns the disks named by `VM01..VM05`, `VM01` or `all`; empty for an unknown name.
    pub(crate) fn disks_in_range(&self, range: &str) -> Vec<u32> {
        let disks = self.disks();
        let index = |name: &str| disks.iter().position(|disk| disk.name == name);
        let (first, last) = match range.split_once("..") {
            _ if range == "all" => (Some(0), disks.len().checked_sub(1)),
            Some((first, last)) => (index(first), index(last)),
            None => (index(range), index(range)),
        };
        match (first, last) {
            (Some(first), Some(last)) => (first as u32..=last as u32).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns true if the scenario selects a parameter for calibration.
    pub const fn has_calibration(&self) -> bool {
        self.calibration.is_some()
    }

    /// Reports keys of the scenario with invalid values.
    pub(crate) fn check_keys(&self, invalid: &mut InvalidKeys) {
        self.check_array(invalid);
        invalid.check_range("timer_late_us", self.timer_delay_max_us, 0, 1_000_000);
        invalid.check_range("capability.depth", self.capacity.depth.into(), 1, 1024);
        invalid.check_range("capability.seconds", self.capacity.seconds, 1, 3600);
        invalid.check_range("capability.settle_s", self.capacity.settle_s, 0, 3600);
        invalid.check_range("node", self.node.len() as u64, 1, 64);
        for node in self.node.iter().filter(|node| node.clock_ppm.abs() > 100_000) {
            invalid.add(
                "node.clock_ppm",
                format!("{} is outside of -100000 to 100000", node.clock_ppm),
            );
        }
        if let Some(cluster) = &self.cluster {
            cluster.check(invalid);
        }
        self.check_clients(invalid);
        for (number, step) in (1..).zip(&self.step) {
            self.check_step(&format!("step {number}"), step, invalid);
        }
        if let Some(swarm) = &self.swarm {
            invalid.check_range("swarm.seconds", swarm.seconds, 1, 86_400);
            invalid.check_range("swarm.faults", swarm.faults, 0, 1000);
            invalid.check_range("swarm.changes", swarm.changes, 0, 1000);
            invalid.check_range("swarm.min_iops", swarm.min_iops, 1, 1_000_000);
            invalid.check_range("swarm.recovery_s", swarm.recovery_s, 0, 3600);
            invalid.check_range("swarm.cluster_faults", swarm.cluster_faults, 0, 1000);
            invalid.check_range("swarm.cluster_recovery_s", swarm.cluster_recovery_s, 0, 3600);
        }
        if let Some(calibration) = &self.calibration {
            if calibration.parameter != "array.drive.media_mb_s" {
                let reason = format!("\"{}\" cannot be calibrated", calibration.parameter);
                invalid.add("calibrate.parameter", format!("{reason}; set array.drive.media_mb_s"));
            }
            invalid.check_range(
                "calibrate.high",
                calibration.high.into(),
                calibration.low.into(),
                100_000,
            );
            invalid.check_range("calibrate.low", calibration.low.into(), 1, 100_000);
        }
    }

    fn check_array(&self, invalid: &mut InvalidKeys) {
        let ArraySpec { pairs, stripe_kb, write_cache_mb, link_mb_s, .. } = self.array;
        invalid.check_range("array.pairs", pairs.into(), 1, 1024);
        invalid.check_range("array.stripe_kb", stripe_kb.into(), 4, 65_536);
        invalid.check_range("array.write_cache_mb", write_cache_mb.into(), 0, 1 << 20);
        invalid.check_range("array.read_hit_percent", self.array.read_hit_percent.into(), 0, 100);
        invalid.check_range("array.link_mb_s", link_mb_s.into(), 1, 1_000_000);
        invalid.check_range("array.controller_us", self.array.controller_us.into(), 0, 1_000_000);
        invalid.check_range("array.noise_percent", self.array.noise_percent.into(), 0, 90);
        let drive = &self.array.drive;
        invalid.check_range("array.drive.rpm", drive.rpm.into(), 1000, 100_000);
        invalid.check_range("array.drive.media_mb_s", drive.media_mb_s.into(), 1, 100_000);
        invalid.check_range("array.drive.capacity_gb", drive.capacity_gb.into(), 1, 1_000_000);
        invalid.check_range("array.drive.reorder", drive.reorder_window.into(), 1, 1024);
        let (track, average) = (drive.seek_track_us.into(), drive.seek_average_us.into());
        invalid.check_range(
            "array.drive.seek_average_us",
            average,
            track,
            drive.seek_full_us.into(),
        );
    }

    fn check_clients(&self, invalid: &mut InvalidKeys) {
        let disks = self.disks();
        invalid.check_range("clients.names", disks.len() as u64, 1, 4096);
        for (index, disk) in disks.iter().enumerate() {
            if disks[..index].iter().any(|other| other.name == disk.name) {
                invalid.add("clients.names", format!("{} is listed twice", disk.name));
            }
        }
        for (number, clients) in (1..).zip(&self.clients) {
            let key = |field: &str| format!("clients {number}.{field}");
            if !self.node.iter().any(|node| node.name == clients.node) {
                let known_names: Vec<&str> =
                    self.node.iter().map(|node| node.name.as_str()).collect();
                let reason = format!("there is no node \"{}\"; existing:", clients.node);
                invalid.add(key("node"), format!("{reason} {}", known_names.join(", ")));
            }
            let load = &clients.load;
            invalid.check_range(key("load.block_kb"), load.block_kb.into(), 1, 65_536);
            invalid.check_range(key("load.depth"), load.depth.into(), 1, 1024);
            invalid.check_range(key("load.write_percent"), load.write_percent.into(), 0, 100);
            invalid.check_range(key("load.size_gb"), load.size_gb.into(), 1, 65_536);
        }
        let stripes = u64::from(self.array.pairs.max(1)) * u64::from(self.array.drive.capacity_gb);
        let size_gb = disks.iter().map(|disk| u64::from(disk.load.size_gb)).sum::<u64>();
        if (size_gb << 30) > stripes * 1_000_000_000 {
            let reason = format!(
                "all disks have {size_gb} GiB in total, but the array has {stripes} GB; raise this \
                 key or array.pairs, or lower load.size_gb"
            );
            invalid.add("array.drive.capacity_gb", reason);
        }
    }

    fn check_step(&self, key: &str, step: &StepSpec, invalid: &mut InvalidKeys) {
        if step.seconds <= self.settle_s {
            let reason = format!("{} must exceed settle_s, {}", step.seconds, self.settle_s);
            invalid.add(format!("{key}.seconds"), reason);
        }
        for (number, set) in (1..).zip(&step.limit_changes) {
            let key = format!("{key}.set {number}");
            self.check_range(&key, &set.disks, invalid);
            if let Err(error) = set.limits().check() {
                invalid.add(&key, error.to_string());
            }
            if set.weight.is_some_and(|weight| Weight::new(weight).is_none()) {
                invalid.add(format!("{key}.weight"), "it must be from 1 to 10000");
            }
        }
        for (number, figure) in (1..).zip(&step.figure) {
            let key = format!("{key}.figure {number}");
            self.check_range(&key, &figure.disks, invalid);
            let other = match &figure.expectation {
                Expectation::Above { step } | Expectation::Below { step } => Some(step),
                Expectation::UnmetNoticeAfter { step, .. } => Some(step),
                _ => None,
            };
            let is_known = |name: &String| self.step.iter().any(|step| step.name == *name);
            if let Some(other) = other.filter(|other| !is_known(other)) {
                invalid.add(format!("{key}.expect"), format!("there is no step \"{other}\""));
            }
        }
    }

    fn check_range(&self, key: &str, range: &str, invalid: &mut InvalidKeys) {
        if self.disks_in_range(range).is_empty() {
            let disks = self.disks();
            let names =
                disks.first().zip(disks.last()).map(|(first, last)| (first.name, last.name));
            let (first, last) = names.unwrap_or(("", ""));
            let reason =
                format!("\"{range}\" names no disk; valid are {first}..{last}, one name, and all");
            invalid.add(format!("{key}.disks"), reason);
        }
    }
}

/// Returns the number of normalised operations that a request counts as.
pub(crate) fn cost(bytes: u32) -> u32 {
    Normalization::default().cost(bytes)
}
