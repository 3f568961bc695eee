//! What a scenario of kind `storage` says.

use serde::Deserialize;
use suimon_quantity::Iops;
use suimon_storage_qos::{Limits, Normalization, Weight};

use crate::cluster::{Clock, ClusterSpec};
use crate::figure::Use;
use crate::kernel::SECOND;
use crate::scenario::Wrongs;
use crate::storage::array::ArraySpec;
use crate::storage::client::LoadSpec;

/// A scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StorageScenario {
    pub(crate) name: String,
    #[expect(dead_code, reason = "it was looked at before")]
    kind: String,
    /// What it is about.
    #[expect(dead_code, reason = "for readers of the file")]
    about: String,
    pub(crate) seed: u64,
    /// The first so many seconds of each step are not in its means.
    pub(crate) settle_s: u64,
    /// Timers fire so much too late at most.
    pub(crate) timer_late_us: u64,
    pub(crate) array: ArraySpec,
    pub(crate) capability: CapabilitySpec,
    pub(crate) node: Vec<NodeSpec>,
    /// Without it each node knows of itself alone.
    pub(crate) cluster: Option<ClusterSpec>,
    pub(crate) clients: Vec<ClientsSpec>,
    pub(crate) step: Vec<StepSpec>,
    pub(crate) swarm: Option<SwarmSpec>,
    pub(crate) calibrate: Option<CalibrateSpec>,
}

/// How it is found out what the array can do: the clients ask it for all they can get, past
/// the scheduler.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CapabilitySpec {
    /// Requests outstanding of each client.
    pub(crate) depth: u32,
    /// The first so many seconds do not count: the cache fills.
    pub(crate) settle_s: u64,
    pub(crate) seconds: u64,
}

/// A node.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeSpec {
    pub(crate) name: String,
    /// Its clock is so much ahead of the run's.
    #[serde(default)]
    pub(crate) clock_ahead_s: u64,
    /// And gains so many millionths.
    #[serde(default)]
    pub(crate) clock_ppm: i32,
}

impl NodeSpec {
    pub(crate) const fn clock(&self) -> Clock {
        Clock { ahead_ns: self.clock_ahead_s * SECOND, ppm: self.clock_ppm }
    }
}

/// Clients that do the same on one node, each with a disk of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientsSpec {
    pub(crate) names: Vec<String>,
    /// The node's name.
    pub(crate) node: String,
    pub(crate) load: LoadSpec,
}

/// A part of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepSpec {
    pub(crate) name: String,
    pub(crate) seconds: u64,
    #[serde(default)]
    pub(crate) set: Vec<SetSpec>,
    #[serde(default)]
    pub(crate) figure: Vec<FigureSpec>,
}

/// Limits that disks get.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetSpec {
    /// `VM01..VM05`, one name, or `all`.
    pub(crate) disks: String,
    #[serde(default)]
    pub(crate) min_iops: u64,
    #[serde(default)]
    pub(crate) max_iops: u64,
    #[serde(default)]
    pub(crate) weight: Option<u16>,
}

/// A published figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureSpec {
    pub(crate) disks: String,
    /// In the document's words.
    pub(crate) published: String,
    #[serde(rename = "use")]
    pub(crate) used: Use,
    pub(crate) expect: Expect,
}

/// When ours agrees with a published figure. Rates are normalised operations per second: of
/// 8 KiB, as the published experiments count.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Expect {
    /// Each disk has so much.
    Each { iops: u64, within_percent: u64 },
    /// Each has less.
    EachBelow { iops: u64 },
    /// All together have less.
    SumBelow { iops: u64 },
    /// None has more than another by so much.
    Equal { within_percent: u64 },
    /// Each has more than in that step.
    Above { step: String },
    /// Each has less than in that step.
    Below { step: String },
    /// Each has 95 % of so much, in each two seconds from so many seconds after the step's begin on.
    ReachedWithin { iops: u64, seconds: u64 },
    /// All together have so much of what the array can do.
    Used { percent: u64 },
    /// It is told that more was asked for than may be promised, so soon after the step's begin.
    Refused { within_s: u64 },
    /// An unmet minimum is told of each, so many seconds after that step's begin.
    ToldAfter { step: String, seconds: u64, within_s: u64 },
}

/// What a swarm may do instead of the steps.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwarmSpec {
    pub(crate) seconds: u64,
    /// Faults at most.
    pub(crate) faults: u64,
    /// Changes of limits and loads at most.
    pub(crate) changes: u64,
    /// Minimums at most.
    pub(crate) min_iops: u64,
    /// So long after a fault no minimum is judged.
    pub(crate) recovery_s: u64,
    /// Faults of the cluster at most.
    #[serde(default)]
    pub(crate) cluster_faults: u64,
    /// So long after one of them what was set meanwhile may be late.
    #[serde(default)]
    pub(crate) cluster_recovery_s: u64,
}

/// A parameter that is not known, and what is to come out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalibrateSpec {
    /// Only `array.drive.media_mb_s` so far.
    pub(crate) parameter: String,
    /// What the manual says it is at least.
    pub(crate) low: u32,
    /// And at most.
    pub(crate) high: u32,
    /// What the array is to do, in normalised operations per second.
    pub(crate) target_iops: u64,
}

/// A disk's place in the scenario.
#[derive(Clone, Debug)]
pub(crate) struct DiskOf<'s> {
    pub(crate) name: &'s str,
    pub(crate) node: usize,
    pub(crate) load: &'s LoadSpec,
}

impl SetSpec {
    /// The limits.
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
    /// All disks, in order.
    pub(crate) fn disks(&self) -> Vec<DiskOf<'_>> {
        let of = |clients: &'_ ClientsSpec| {
            self.node.iter().position(|node| node.name == clients.node).unwrap_or_default()
        };
        let all = self.clients.iter().flat_map(|clients| {
            let node = of(clients);
            clients.names.iter().map(move |name| DiskOf { name, node, load: &clients.load })
        });
        all.collect()
    }

    /// The disks that `VM01..VM05`, `VM01` or `all` names; none if there is no such name.
    pub(crate) fn named(&self, range: &str) -> Vec<u32> {
        let disks = self.disks();
        let at = |name: &str| disks.iter().position(|disk| disk.name == name);
        let (first, last) = match range.split_once("..") {
            _ if range == "all" => (Some(0), disks.len().checked_sub(1)),
            Some((first, last)) => (at(first), at(last)),
            None => (at(range), at(range)),
        };
        match (first, last) {
            (Some(first), Some(last)) => (first as u32..=last as u32).collect(),
            _ => Vec::new(),
        }
    }

    /// Says what makes no sense.
    pub(crate) fn check(&self, wrong: &mut Wrongs) {
        self.check_array(wrong);
        wrong.within("timer_late_us", self.timer_late_us, 0, 1_000_000);
        wrong.within("capability.depth", self.capability.depth.into(), 1, 1024);
        wrong.within("capability.seconds", self.capability.seconds, 1, 3600);
        wrong.within("capability.settle_s", self.capability.settle_s, 0, 3600);
        wrong.within("node", self.node.len() as u64, 1, 64);
        for node in self.node.iter().filter(|node| node.clock_ppm.abs() > 100_000) {
            wrong
                .add("node.clock_ppm", format!("{} is not from -100000 to 100000", node.clock_ppm));
        }
        if let Some(cluster) = &self.cluster {
            cluster.check(wrong);
        }
        self.check_clients(wrong);
        for (number, step) in (1..).zip(&self.step) {
            self.check_step(&format!("step {number}"), step, wrong);
        }
        if let Some(swarm) = &self.swarm {
            wrong.within("swarm.seconds", swarm.seconds, 1, 86_400);
            wrong.within("swarm.faults", swarm.faults, 0, 1000);
            wrong.within("swarm.changes", swarm.changes, 0, 1000);
            wrong.within("swarm.min_iops", swarm.min_iops, 1, 1_000_000);
            wrong.within("swarm.recovery_s", swarm.recovery_s, 0, 3600);
            wrong.within("swarm.cluster_faults", swarm.cluster_faults, 0, 1000);
            wrong.within("swarm.cluster_recovery_s", swarm.cluster_recovery_s, 0, 3600);
        }
        if let Some(of) = &self.calibrate {
            if of.parameter != "array.drive.media_mb_s" {
                let why = format!("\"{}\" cannot be calibrated", of.parameter);
                wrong.add("calibrate.parameter", format!("{why}; array.drive.media_mb_s can"));
            }
            wrong.within("calibrate.high", of.high.into(), of.low.into(), 100_000);
            wrong.within("calibrate.low", of.low.into(), 1, 100_000);
        }
    }

    fn check_array(&self, wrong: &mut Wrongs) {
        let ArraySpec { pairs, stripe_kb, write_cache_mb, link_mb_s, .. } = self.array;
        wrong.within("array.pairs", pairs.into(), 1, 1024);
        wrong.within("array.stripe_kb", stripe_kb.into(), 4, 65_536);
        wrong.within("array.write_cache_mb", write_cache_mb.into(), 0, 1 << 20);
        wrong.within("array.read_hit_percent", self.array.read_hit_percent.into(), 0, 100);
        wrong.within("array.link_mb_s", link_mb_s.into(), 1, 1_000_000);
        wrong.within("array.controller_us", self.array.controller_us.into(), 0, 1_000_000);
        wrong.within("array.noise_percent", self.array.noise_percent.into(), 0, 90);
        let drive = &self.array.drive;
        wrong.within("array.drive.rpm", drive.rpm.into(), 1000, 100_000);
        wrong.within("array.drive.media_mb_s", drive.media_mb_s.into(), 1, 100_000);
        wrong.within("array.drive.capacity_gb", drive.capacity_gb.into(), 1, 1_000_000);
        wrong.within("array.drive.reorder", drive.reorder.into(), 1, 1024);
        let (track, average) = (drive.seek_track_us.into(), drive.seek_average_us.into());
        wrong.within("array.drive.seek_average_us", average, track, drive.seek_full_us.into());
    }

    fn check_clients(&self, wrong: &mut Wrongs) {
        let disks = self.disks();
        wrong.within("clients.names", disks.len() as u64, 1, 4096);
        for (at, disk) in disks.iter().enumerate() {
            if disks[..at].iter().any(|other| other.name == disk.name) {
                wrong.add("clients.names", format!("{} is there twice", disk.name));
            }
        }
        for (number, clients) in (1..).zip(&self.clients) {
            let key = |field: &str| format!("clients {number}.{field}");
            if !self.node.iter().any(|node| node.name == clients.node) {
                let known: Vec<&str> = self.node.iter().map(|node| node.name.as_str()).collect();
                let why = format!("there is no node \"{}\"; there are", clients.node);
                wrong.add(key("node"), format!("{why} {}", known.join(", ")));
            }
            let load = &clients.load;
            wrong.within(key("load.block_kb"), load.block_kb.into(), 1, 65_536);
            wrong.within(key("load.depth"), load.depth.into(), 1, 1024);
            wrong.within(key("load.write_percent"), load.write_percent.into(), 0, 100);
            wrong.within(key("load.size_gb"), load.size_gb.into(), 1, 65_536);
        }
        let stripes = u64::from(self.array.pairs.max(1)) * u64::from(self.array.drive.capacity_gb);
        let asked = disks.iter().map(|disk| u64::from(disk.load.size_gb)).sum::<u64>();
        if (asked << 30) > stripes * 1_000_000_000 {
            let why = format!("all disks have {asked} GiB, and the array {stripes} GB");
            wrong.add("array.drive.capacity_gb", why);
        }
    }

    fn check_step(&self, key: &str, step: &StepSpec, wrong: &mut Wrongs) {
        if step.seconds <= self.settle_s {
            let why = format!("{} is not more than settle_s, {}", step.seconds, self.settle_s);
            wrong.add(format!("{key}.seconds"), why);
        }
        for (number, set) in (1..).zip(&step.set) {
            let key = format!("{key}.set {number}");
            self.check_range(&key, &set.disks, wrong);
            if let Err(error) = set.limits().check() {
                wrong.add(&key, error.to_string());
            }
            if set.weight.is_some_and(|weight| Weight::new(weight).is_none()) {
                wrong.add(format!("{key}.weight"), "it must be from 1 to 10000");
            }
        }
        for (number, figure) in (1..).zip(&step.figure) {
            let key = format!("{key}.figure {number}");
            self.check_range(&key, &figure.disks, wrong);
            let other = match &figure.expect {
                Expect::Above { step } | Expect::Below { step } => Some(step),
                Expect::ToldAfter { step, .. } => Some(step),
                _ => None,
            };
            let is_known = |name: &String| self.step.iter().any(|step| step.name == *name);
            if let Some(other) = other.filter(|other| !is_known(other)) {
                wrong.add(format!("{key}.expect"), format!("there is no step \"{other}\""));
            }
        }
    }

    fn check_range(&self, key: &str, range: &str, wrong: &mut Wrongs) {
        if self.named(range).is_empty() {
            let disks = self.disks();
            let names = disks.first().zip(disks.last()).map(|(one, two)| (one.name, two.name));
            let (first, last) = names.unwrap_or(("", ""));
            let why = format!("\"{range}\" names no disk; {first}..{last}, one name or all does");
            wrong.add(format!("{key}.disks"), why);
        }
    }
}

/// What a request counts as.
pub(crate) fn cost(bytes: u32) -> u32 {
    Normalization::default().cost(bytes)
}
