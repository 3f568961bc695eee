//! What a scenario of kind `network` says.

use serde::Deserialize;
use suimon_teaming::{Algorithm, TeamMode};

use crate::figure::Use;
use crate::processors::Sharing;
use crate::scenario::Wrongs;

/// A scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NetworkScenario {
    pub(crate) name: String,
    #[expect(dead_code, reason = "it was looked at before")]
    kind: String,
    /// What it is about.
    #[expect(dead_code, reason = "for readers of the file")]
    about: String,
    pub(crate) seed: u64,
    /// The first so many seconds of each step are not in its means.
    pub(crate) settle_s: u64,
    pub(crate) host: HostSpec,
    pub(crate) team: TeamOf,
    pub(crate) vms: VmsSpec,
    pub(crate) step: Vec<StepSpec>,
    pub(crate) swarm: Option<SwarmSpec>,
}

/// The host's processors, and what frames cost them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostSpec {
    pub(crate) logical_cpus: u16,
    pub(crate) threads_per_core: u16,
    pub(crate) numa_nodes: u16,
    /// Processors that VMQ may use until a step says otherwise.
    pub(crate) max_processors: u16,
    /// What is done with each frame, one stage after the other.
    pub(crate) stage: Vec<StageSpec>,
    /// Each other processor that works makes work take so many thousandths longer.
    pub(crate) contention_permille: u64,
    /// How quick a thread is whose sibling works, in percent of what it is alone.
    pub(crate) sibling_percent: u64,
}

impl HostSpec {
    pub(crate) const fn sharing(&self) -> Sharing {
        let Self { logical_cpus, threads_per_core, numa_nodes, sibling_percent, .. } = *self;
        Sharing { logical_cpus, threads_per_core, numa_nodes, sibling_percent }
    }
}

/// A stage of the way from a NIC to a VM.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StageSpec {
    #[expect(dead_code, reason = "for readers of the file")]
    name: String,
    pub(crate) frame_ns: u64,
    pub(crate) byte_ps: u64,
}

/// The team of NICs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TeamOf {
    pub(crate) members: u32,
    pub(crate) gbit_s: u64,
    /// `static/hyper-v-port`, …: the scenario is run with each; `all`: the twelve of the
    /// published experiment.
    pub(crate) combinations: Vec<String>,
}

/// VMs and what is sent to them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VmsSpec {
    pub(crate) count: u32,
    /// What a session's sender sends at most.
    pub(crate) session_mbit_s: u64,
    /// From a VM's answer to the next data on its NIC, without any waiting.
    pub(crate) round_trip_us: u64,
    pub(crate) mtu: u64,
}

/// A part of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepSpec {
    pub(crate) name: String,
    pub(crate) seconds: u64,
    /// Of each VM.
    pub(crate) sessions: u32,
    pub(crate) max_processors: Option<u16>,
    #[serde(default)]
    pub(crate) figure: Vec<FigureSpec>,
}

/// A published figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureSpec {
    /// Of which combinations; without any, of all.
    #[serde(default)]
    pub(crate) combinations: Vec<String>,
    pub(crate) published: String,
    #[serde(rename = "use")]
    pub(crate) used: Use,
    pub(crate) expect: Expect,
}

/// When ours agrees with a published figure.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Expect {
    /// So much is received, TCP's payload.
    Received { mbit_s: u64, within_percent: u64 },
    /// So many processors have queues at the step's end.
    Processors { count: usize },
    /// Each of them is busy for so much of its time, from and to.
    Busy { from_percent: u64, to_percent: u64 },
}

/// What a swarm may do instead of the steps.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwarmSpec {
    pub(crate) seconds: u64,
    /// Links that fail, processors that something else takes.
    pub(crate) faults: u64,
    /// Changes of sessions and of `max_processors`.
    pub(crate) changes: u64,
    /// Sessions of a VM at most.
    pub(crate) sessions: u32,
}

/// A team's mode and algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Combination(pub(crate) TeamMode, pub(crate) Algorithm);

impl Combination {
    /// The twelve of the published experiment.
    pub(crate) fn all() -> Vec<Self> {
        let modes = [TeamMode::Static, TeamMode::Lacp, TeamMode::SwitchIndependent];
        let algorithms = [
            Algorithm::HyperVPort,
            Algorithm::TransportPorts,
            Algorithm::IpAddresses,
            Algorithm::MacAddresses,
        ];
        let of = |mode| algorithms.map(|algorithm| Self(mode, algorithm));
        modes.into_iter().flat_map(of).collect()
    }

    pub(crate) fn name(self) -> String {
        format!("{}/{}", self.0, self.1)
    }
}

impl NetworkScenario {
    /// With which combinations it is run.
    pub(crate) fn combinations(&self) -> Vec<Combination> {
        named(&self.team.combinations)
    }

    /// Says what makes no sense.
    pub(crate) fn check(&self, wrong: &mut Wrongs) {
        let HostSpec { logical_cpus, threads_per_core, numa_nodes, .. } = self.host;
        wrong.within("host.logical_cpus", logical_cpus.into(), 1, 1024);
        let threads = threads_per_core.into();
        wrong.within("host.threads_per_core", threads, 1, logical_cpus.clamp(1, 8).into());
        wrong.within("host.numa_nodes", numa_nodes.into(), 1, logical_cpus.max(1).into());
        wrong.within("host.max_processors", self.host.max_processors.into(), 1, 1024);
        wrong.within("host.sibling_percent", self.host.sibling_percent, 1, 100);
        wrong.within("host.contention_permille", self.host.contention_permille, 0, 10_000);
        let cost: u64 = self.host.stage.iter().map(|of| of.frame_ns + of.byte_ps).sum();
        wrong.within("host.stage", cost, 1, 1_000_000_000);
        wrong.within("team.members", self.team.members.into(), 1, 32);
        wrong.within("team.gbit_s", self.team.gbit_s, 1, 1000);
        check_names("team.combinations", &self.team.combinations, wrong);
        if self.team.combinations.is_empty() {
            wrong.add("team.combinations", "name one, or all");
        }
        wrong.within("vms.count", self.vms.count.into(), 1, 4096);
        wrong.within("vms.session_mbit_s", self.vms.session_mbit_s, 1, 1_000_000);
        wrong.within("vms.mtu", self.vms.mtu, 576, 9216);
        for (number, step) in (1..).zip(&self.step) {
            let key = |field: &str| format!("step {number}.{field}");
            if step.seconds <= self.settle_s {
                let why = format!("{} is not more than settle_s, {}", step.seconds, self.settle_s);
                wrong.add(key("seconds"), why);
            }
            wrong.within(key("sessions"), step.sessions.into(), 0, 65_535);
            if let Some(most) = step.max_processors {
                wrong.within(key("max_processors"), most.into(), 1, 1024);
            }
            for figure in &step.figure {
                check_names(&key("figure.combinations"), &figure.combinations, wrong);
            }
        }
        if let Some(swarm) = &self.swarm {
            wrong.within("swarm.seconds", swarm.seconds, 1, 86_400);
            wrong.within("swarm.faults", swarm.faults, 0, 1000);
            wrong.within("swarm.changes", swarm.changes, 0, 1000);
            wrong.within("swarm.sessions", swarm.sessions.into(), 1, 65_535);
        }
    }
}

/// The combinations of these names.
pub(crate) fn named(names: &[String]) -> Vec<Combination> {
    let is_named = |of: &Combination| names.iter().any(|name| name == "all" || *name == of.name());
    Combination::all().into_iter().filter(is_named).collect()
}

fn check_names(key: &str, names: &[String], wrong: &mut Wrongs) {
    for name in names {
        if named(std::slice::from_ref(name)).is_empty() {
            let why = "all and static/hyper-v-port are, with the modes static, lacp and \
                       switch-independent and the algorithms hyper-v-port, transport-ports, \
                       ip-addresses and mac-addresses";
            wrong.add(key, format!("\"{name}\" is no combination; {why}"));
        }
    }
}
