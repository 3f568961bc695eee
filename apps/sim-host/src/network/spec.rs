//! Scenarios of kind `network`.

use serde::Deserialize;
use suimon_sim_kernel::{FigurePurpose, InvalidKeys};
use suimon_teaming::{Algorithm, TeamMode};

use crate::processors::CpuSharingModel;

/// Network scenario: team, workers and load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkScenario {
    pub(crate) name: String,
    #[expect(dead_code, reason = "it was looked at before")]
    kind: String,
    /// Description of the scenario for readers of the file.
    #[expect(dead_code, reason = "for readers of the file")]
    about: String,
    pub(crate) seed: u64,
    /// Length in s of the initial part of each step that is excluded from means.
    pub(crate) settle_s: u64,
    pub(crate) host: HostSpec,
    pub(crate) team: TeamSpec,
    pub(crate) vms: VmsSpec,
    pub(crate) step: Vec<StepSpec>,
    pub(crate) swarm: Option<SwarmSpec>,
}

/// CPUs of the host, and cost of frames.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostSpec {
    pub(crate) logical_cpus: u16,
    pub(crate) threads_per_core: u16,
    pub(crate) numa_nodes: u16,
    /// Initial number of workers that VMQ may use.
    #[serde(rename = "max_processors")]
    pub(crate) max_workers: u16,
    /// Stages that process each frame, in order.
    pub(crate) stage: Vec<StageSpec>,
    /// Increase of the duration of work by each other busy CPU, in thousandths.
    pub(crate) contention_permille: u64,
    /// Speed of a thread with a busy sibling, in percent of its speed with an idle sibling.
    #[serde(rename = "sibling_percent")]
    pub(crate) busy_sibling_speed_percent: u64,
}

impl HostSpec {
    pub(crate) const fn sharing(&self) -> CpuSharingModel {
        let Self {
            logical_cpus,
            threads_per_core,
            numa_nodes,
            busy_sibling_speed_percent: sibling_percent,
            ..
        } = *self;
        CpuSharingModel {
            logical_cpus,
            threads_per_core,
            numa_nodes,
            busy_sibling_speed_percent: sibling_percent,
        }
    }
}

/// Stage of the processing of frames between a NIC and a VM.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StageSpec {
    #[expect(dead_code, reason = "for readers of the file")]
    name: String,
    pub(crate) frame_ns: u64,
    pub(crate) byte_ps: u64,
}

/// Team of NICs of the host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TeamSpec {
    pub(crate) members: u32,
    pub(crate) gbit_s: u64,
    /// Combinations such as `static/hyper-v-port`, each of which is run; `all` for the twelve of
    /// the published experiment.
    pub(crate) combinations: Vec<String>,
}

/// VMs, and data sent to them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VmsSpec {
    pub(crate) count: u32,
    /// Limit of a session's rate in Mbit/s.
    pub(crate) session_mbit_s: u64,
    /// Time in µs from a VM's acknowledgement to the arrival of the next data at its NIC, without
    /// queueing.
    pub(crate) round_trip_us: u64,
    pub(crate) mtu: u64,
}

/// Step of a scenario with constant load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepSpec {
    pub(crate) name: String,
    pub(crate) seconds: u64,
    /// Number of sessions of each VM.
    pub(crate) sessions: u32,
    #[serde(rename = "max_processors")]
    pub(crate) max_workers: Option<u16>,
    #[serde(default)]
    pub(crate) figure: Vec<FigureSpec>,
}

/// Published figure with an expectation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureSpec {
    /// Names of the combinations that the figure concerns; all if empty.
    #[serde(default)]
    pub(crate) combinations: Vec<String>,
    pub(crate) published: String,
    #[serde(rename = "use")]
    pub(crate) purpose: FigurePurpose,
    #[serde(rename = "expect")]
    pub(crate) expectation: Expectation,
}

/// Expectation for a published figure.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Expectation {
    /// Throughput of received TCP payload.
    #[serde(rename = "received")]
    Throughput { mbit_s: u64, within_percent: u64 },
    /// Number of workers that own queues at the end of the step.
    #[serde(rename = "processors")]
    WorkersInUse { count: usize },
    /// Range of the utilisation of each worker that owns queues.
    #[serde(rename = "busy")]
    WorkerUtilisation { from_percent: u64, to_percent: u64 },
}

/// Numbers of random events in swarm runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwarmSpec {
    pub(crate) seconds: u64,
    /// Number of link failures, and of CPUs taken by external load.
    pub(crate) faults: u64,
    /// Number of changes of sessions and of `max_processors`.
    pub(crate) changes: u64,
    /// Largest number of sessions of a VM.
    pub(crate) sessions: u32,
}

/// Combination of a team mode and an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Combination(pub(crate) TeamMode, pub(crate) Algorithm);

impl Combination {
    /// Returns the twelve combinations of the published experiment.
    pub(crate) fn all() -> Vec<Self> {
        let modes = [TeamMode::Static, TeamMode::Lacp, TeamMode::SwitchIndependent];
        let algorithms = [
            Algorithm::HyperVPort,
            Algorithm::TransportPorts,
            Algorithm::IpAddresses,
            Algorithm::MacAddresses,
        ];
        let of_mode = |mode| algorithms.map(|algorithm| Self(mode, algorithm));
        modes.into_iter().flat_map(of_mode).collect()
    }

    pub(crate) fn name(self) -> String {
        format!("{}/{}", self.0, self.1)
    }
}

impl NetworkScenario {
    /// Returns the combinations to run.
    pub(crate) fn combinations(&self) -> Vec<Combination> {
        parse_combinations(&self.team.combinations)
    }

    /// Reports keys of the scenario with invalid values.
    pub(crate) fn check_keys(&self, invalid: &mut InvalidKeys) {
        let HostSpec { logical_cpus, threads_per_core, numa_nodes, .. } = self.host;
        invalid.check_range("host.logical_cpus", logical_cpus.into(), 1, 1024);
        let threads = threads_per_core.into();
        invalid.check_range("host.threads_per_core", threads, 1, logical_cpus.clamp(1, 8).into());
        invalid.check_range("host.numa_nodes", numa_nodes.into(), 1, logical_cpus.max(1).into());
        invalid.check_range("host.max_processors", self.host.max_workers.into(), 1, 1024);
        invalid.check_range("host.sibling_percent", self.host.busy_sibling_speed_percent, 1, 100);
        invalid.check_range("host.contention_permille", self.host.contention_permille, 0, 10_000);
        let cost: u64 = self.host.stage.iter().map(|stage| stage.frame_ns + stage.byte_ps).sum();
        invalid.check_range("host.stage", cost, 1, 1_000_000_000);
        invalid.check_range("team.members", self.team.members.into(), 1, 32);
        invalid.check_range("team.gbit_s", self.team.gbit_s, 1, 1000);
        check_names("team.combinations", &self.team.combinations, invalid);
        if self.team.combinations.is_empty() {
            invalid.add("team.combinations", "missing; name at least one combination, or all");
        }
        invalid.check_range("vms.count", self.vms.count.into(), 1, 4096);
        invalid.check_range("vms.session_mbit_s", self.vms.session_mbit_s, 1, 1_000_000);
        invalid.check_range("vms.mtu", self.vms.mtu, 576, 9216);
        for (number, step) in (1..).zip(&self.step) {
            let key = |field: &str| format!("step {number}.{field}");
            if step.seconds <= self.settle_s {
                let reason = format!("{} must exceed settle_s, {}", step.seconds, self.settle_s);
                invalid.add(key("seconds"), reason);
            }
            invalid.check_range(key("sessions"), step.sessions.into(), 0, 65_535);
            if let Some(max) = step.max_workers {
                invalid.check_range(key("max_processors"), max.into(), 1, 1024);
            }
            for figure in &step.figure {
                check_names(&key("figure.combinations"), &figure.combinations, invalid);
            }
        }
        if let Some(swarm) = &self.swarm {
            invalid.check_range("swarm.seconds", swarm.seconds, 1, 86_400);
            invalid.check_range("swarm.faults", swarm.faults, 0, 1000);
            invalid.check_range("swarm.changes", swarm.changes, 0, 1000);
            invalid.check_range("swarm.sessions", swarm.sessions.into(), 1, 65_535);
        }
    }
}

/// Returns the combinations with these names.
pub(crate) fn parse_combinations(names: &[String]) -> Vec<Combination> {
    let is_named = |combination: &Combination| {
        names.iter().any(|name| name == "all" || *name == combination.name())
    };
    Combination::all().into_iter().filter(is_named).collect()
}

fn check_names(key: &str, names: &[String], invalid: &mut InvalidKeys) {
    for name in names {
        if parse_combinations(std::slice::from_ref(name)).is_empty() {
            let valid_values = "valid are all and static/hyper-v-port, with the modes static, lacp \
                       and switch-independent and the algorithms hyper-v-port, transport-ports, \
                       ip-addresses and mac-addresses";
            invalid.add(key, format!("\"{name}\" is not a combination; {valid_values}"));
        }
    }
}
