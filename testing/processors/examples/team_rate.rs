//! Benchmark of the cost of forwarding a frame to and from a single uplink and a team of two
//! members, for each mode and distribution algorithm, with queues of negligible cost. Uplink and
//! team are measured alternately, so that other load on the host affects both.
//!
//! `cargo run --release -p suimon-processor-tests --example team_rate [words]`: measures only the
//! combinations of load, mode and algorithm whose output line contains all given words.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec};
use suimon_frame::{FrameBatch, MacAddr, Offloads, VnetHeader};
use suimon_ports::{FrameSource, QueueFault, QueueHost, WorkerRuntime};
use suimon_processor_tests::{EndlessSource, NullSink, Supply, mac, queue, small_frame};
use suimon_quantity::{Direction, PortId, SwitchId};
use suimon_switch::{DataPlane, PortTopology, TeamMember, TeamTopology, Topology};
use suimon_teaming::{
    Algorithm, MemberId, MemberLink, MemberSpec, Team, TeamId, TeamMode, TeamPort, TeamSpec,
};
use suimon_test_programs::end_program;
use suimon_wait::WorkerThreads;

const PAIRS: usize = 5;
const WINDOW: Duration = Duration::from_millis(100);
/// Windows per sample. The first one is skipped, because caches and branch predictors are cold.
const WINDOWS: usize = 6;
const SWITCH: SwitchId = SwitchId(1);
const UPLINK: u32 = 1;
const MEMBERS: [u32; 2] = [2, 3];

/// Last byte of the NIC's MAC address, and of the MAC address of the first remote station.
const NIC: u8 = 0;
const STATION: u8 = 1;

/// Source of frames of several flows in round-robin order.
struct Flows(Vec<Vec<u8>>);

impl Flows {
    /// Returns a source of `flows` flows between the two addresses `macs`: destination, source.
    fn new(macs: [u8; 2], flows: u8) -> Self {
        Self::from_macs(|_| macs, flows)
    }

    /// Returns a source of one flow to the NIC from each of `stations` remote stations.
    fn of_stations(stations: u8) -> Self {
        Self::from_macs(|flow| [NIC, STATION + flow], stations)
    }

    fn from_macs(macs: impl Fn(u8) -> [u8; 2], flows: u8) -> Self {
        let flow = |flow: u8| {
            let mut bytes = macs(flow).map(mac).concat();
            bytes.extend([0x08, 0x00, 0x45, 0, 0, 50, 0, 1, 0x40, 0, 64, 17, 0, 0]);
            bytes.extend([10, 0, 0, 1, 10, 0, 1, flow, 0x10, 0x10, 0x20, flow, 0, 30, 0, 0]);
            bytes.resize(64, 0);
            bytes
        };
        Self((0..flows).map(flow).collect())
    }
}

impl Supply for Flows {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        let before = batch.len();
        for bytes in self.0.iter().cycle() {
            let Some(frame) = batch.next_free_frame() else { break };
            frame.space_mut()[..bytes.len()].copy_from_slice(bytes);
            frame.set_len(bytes.len());
            if frame.validate_ingress(&VnetHeader::default(), Offloads::NONE).is_ok() {
                batch.commit();
            }
        }
        Ok(batch.len() - before)
    }
}

/// Source of a single frame from the remote station, from which the switch learns its address.
struct Introduction(Option<[u8; 64]>);

impl Supply for Introduction {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        let Some(bytes) = self.0.take() else { return Ok(0) };
        EndlessSource::new(bytes).fill(batch)
    }

    fn is_over(&self) -> bool {
        self.0.is_none()
    }
}

/// Traffic of a measurement.
struct Load {
    name: &'static str,
    /// Whether the frames arrive on the uplink, or on the first member of the team.
    is_incoming: bool,
    source: fn() -> Box<dyn FrameSource>,
}

const LOADS: [Load; 5] = [
    Load {
        name: "out, 64 bytes, one flow",
        is_incoming: false,
        source: || Flows::new([STATION, NIC], 1).source(),
    },
    Load {
        name: "out, 64 bytes, 64 flows, each frame another",
        is_incoming: false,
        source: || Flows::new([STATION, NIC], 64).source(),
    },
    Load {
        name: "out, 1514 bytes, one flow, partial checksums",
        is_incoming: false,
        source: || EndlessSource::stream([STATION, NIC].map(mac), 32, 1460).source(),
    },
    Load {
        name: "in, 64 bytes, one station",
        is_incoming: true,
        source: || Flows::new([NIC, STATION], 64).source(),
    },
    Load {
        name: "in, 64 bytes, 64 stations, each frame another",
        is_incoming: true,
        source: || Flows::of_stations(64).source(),
    },
];

const ALGORITHMS: [Algorithm; 5] = [
    Algorithm::HyperVPort,
    Algorithm::TransportPorts,
    Algorithm::IpAddresses,
    Algorithm::MacAddresses,
    Algorithm::Dynamic,
];

fn main() -> ExitCode {
    end_program("team_rate", measure_all())
}

fn measure_all() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    println!("ns a frame: uplink, team of two, their ratio; medians");
    for load in &LOADS {
        for mode in [TeamMode::Static, TeamMode::SwitchIndependent] {
            for algorithm in ALGORITHMS {
                let line = format!("{}: {mode} {algorithm}", load.name);
                if arguments.iter().all(|argument| line.contains(argument.as_str())) {
                    let [uplink, team, ratio] = measure(load, mode, algorithm)?;
                    println!("{line}: {uplink:.2} {team:.2} {ratio:.3}");
                }
            }
        }
    }
    Ok(())
}

fn measure(load: &Load, mode: TeamMode, algorithm: Algorithm) -> Result<[f64; 3]> {
    let mut samples = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..PAIRS {
        let [uplink, team] = [sample(None, load)?, sample(Some((mode, algorithm)), load)?];
        for (values, value) in samples.iter_mut().zip([uplink, team, team / uplink]) {
            values.push(value);
        }
    }
    Ok(samples.map(median))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn port(id: u32, role: PortRole, address: Option<u8>) -> PortTopology {
    let mac = address.map(|address| MacAddr::new(mac(address)));
    PortTopology {
        spec: ForwardingPortSpec { mac, ..ForwardingPortSpec::new(PortId(id), SWITCH, role) },
        bandwidth: None,
        storm_limit_fps: None,
        receive_coalescing: true,
    }
}

fn team(mode: TeamMode, algorithm: Algorithm) -> Result<TeamTopology> {
    let spec = |id: u32| MemberSpec {
        id: MemberId(id),
        mac: MacAddr::new([0, 0x1b, 0x21, 0, 0, id as u8]),
    };
    let mut team = Team::new(TeamSpec::new(TeamId(1), mode, algorithm, &MEMBERS.map(spec)))?;
    let _ = team.set_ports(&[TeamPort { id: PortId(0), mac: Some(MacAddr::new(mac(0))) }]);
    let link = MemberLink { up: true, speed_mbps: 10_000, distributing: true, collecting: true };
    for id in MEMBERS {
        let _ = team.handle_member_link(MemberId(id), link)?;
    }
    Ok(TeamTopology {
        port: PortId(UPLINK),
        members: MEMBERS.map(|id| TeamMember { id: MemberId(id), port: PortId(id) }).to_vec(),
        distribution: Arc::clone(team.distribution()),
    })
}

/// Measures the cost of a frame in ns, to or from a single uplink (`None`) or a team.
fn sample(kind: Option<(TeamMode, Algorithm)>, load: &Load) -> Result<f64> {
    let runtime = Arc::new(WorkerThreads);
    let cpu = runtime.allowed_cpus()[0];
    let plane = DataPlane::start(&[cpu], runtime)?;
    let teams = kind.map(|(mode, algorithm)| team(mode, algorithm)).transpose()?;
    let nic = port(0, PortRole::Nic, Some(NIC));
    plane.publish(Topology {
        switches: vec![SwitchSpec::new(SWITCH)],
        ports: vec![nic, port(UPLINK, PortRole::Uplink, None)],
        teams: teams.into_iter().collect(),
    })?;
    let links = if kind.is_some() { &MEMBERS[..] } else { &[UPLINK] };
    for id in links.iter().chain(&[0]) {
        let offloads = Offloads::TCP.without_segmentation();
        plane.attach_sink(queue(*id, Direction::Egress), Box::new(NullSink(offloads)));
    }
    if load.is_incoming {
        plane.attach_source(queue(links[0], Direction::Ingress), (load.source)());
    } else {
        for id in links {
            let introduction = Introduction(Some(small_frame(STATION, NIC)));
            plane.attach_source(queue(*id, Direction::Ingress), introduction.source());
        }
        while plane.addresses(SWITCH).len() < 2 {
            std::thread::yield_now();
        }
        plane.attach_source(queue(0, Direction::Ingress), (load.source)());
    }
    let windows = (0..WINDOWS).map(|_| ns_per_frame(&plane)).skip(1).collect();
    let source_port = if load.is_incoming { links[0] } else { 0 };
    let lost = plane.port_counters(PortId(source_port)).rx_dropped;
    if !lost.is_empty() {
        bail!("frames went nowhere: {lost:?}");
    }
    plane.stop();
    Ok(median(windows))
}

/// Returns the cost of an ingress frame in the next window in ns, computed from the CPU time of the
/// worker, so that other load on the CPU does not count.
fn ns_per_frame(plane: &DataPlane) -> f64 {
    let before = plane.workers().remove(0);
    std::thread::sleep(WINDOW);
    let after = plane.workers().remove(0);
    (after.cpu_time - before.cpu_time).as_nanos() as f64 / (after.frames - before.frames) as f64
}
