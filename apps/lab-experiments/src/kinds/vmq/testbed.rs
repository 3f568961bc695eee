//! Setup: guests, a daemon with a team, and a switch behind it: a bond of Open vSwitch for LACP, a
//! static group made with the kernel's traffic control, or the kernel's bridge for a
//! switch-independent team.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;
use suimon_rig::ovs::{Lacp, OvsBonds};
use suimon_rig::{
    Daemon, Namespace, NamespaceGuest, Rig, Veth, make_static_group, run, wait_until,
};

use super::second_sample::{SecondSample, WorkerLoad};
use super::settings::{Combination, Settings};

/// Address of the host behind the physical switch that the team is connected to.
pub(crate) const EXTERNAL_ADDRESS: &str = "10.77.0.1";

/// Setup of the measurement, except the load. Fields are dropped in order.
pub(crate) struct Testbed {
    daemon: Daemon,
    pub(crate) guests: Vec<NamespaceGuest>,
    _wires: Vec<Veth>,
    far: Far,
}

/// Physical switch at the other end of the team, by team mode.
enum Far {
    Bridge(Namespace),
    Group(Namespace),
    Bond(Box<OvsBonds>),
}

impl Far {
    fn new(rig: &Rig, mode: &str) -> Result<Self> {
        Ok(match mode {
            "lacp" => Self::Bond(Box::new(OvsBonds::start(rig)?)),
            "static" => Self::Group(Namespace::new(rig, "far")?),
            _ => Self::Bridge(Namespace::new(rig, "far")?),
        })
    }

    fn namespace(&self) -> &Namespace {
        match self {
            Self::Bridge(namespace) | Self::Group(namespace) => namespace,
            Self::Bond(switch) => switch.namespace(),
        }
    }

    /// Makes the devices ports of the physical switch. Returns the name of the device that has the
    /// switch's IP addresses.
    fn join(&mut self, rig: &Rig, devices: &[String]) -> Result<String> {
        match self {
            Self::Group(namespace) => make_static_group(rig, namespace, devices),
            Self::Bond(switch) => {
                // Without this, the kernel would answer ARP requests for the bridge with a link's
                // MAC address.
                for device in devices {
                    switch.namespace().run(&["ip", "link", "set", device, "arp", "off"])?;
                }
                switch.join(devices, Lacp::Active)
            }
            Self::Bridge(namespace) => {
                let bridge = "far";
                namespace.run(&["ip", "link", "add", bridge, "type", "bridge"])?;
                namespace.run(&["ip", "link", "set", bridge, "up"])?;
                for device in devices {
                    namespace.run(&["ip", "link", "set", device, "master", bridge])?;
                }
                Ok(bridge.to_owned())
            }
        }
    }
}

/// Bytes that all NICs have carried in both directions, with the time of the reading.
pub(crate) struct NicBytes {
    time: Instant,
    bytes: u64,
}

impl Testbed {
    pub(crate) fn set_up(
        rig: &Rig,
        plan: &Settings,
        combination: Combination<'_>,
        limit: Duration,
    ) -> Result<Self> {
        let mut far_side = Far::new(rig, combination.mode)?;
        let mut wires = Vec::new();
        let mut far_ends = Vec::new();
        let mut host = format!(
            "[host]\nname = \"experiment\"\nfloating_workers = {}\n\
             [[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"team\"\n\
             [[team]]\nname = \"team\"\nmode = \"{}\"\nalgorithm = \"{}\"\n",
            plan.workers, combination.mode, combination.algorithm
        );
        if combination.mode == "lacp" {
            host += "lacp_timer = \"fast\"\n";
        }
        let members: Vec<String> =
            (0..plan.uplinks).map(|number| format!("\"up{number}\"")).collect();
        let _ = write!(
            host,
            "members = [{}]\nvmq.max_workers = {}\n",
            members.join(", "),
            plan.max_workers
        );
        for number in 0..plan.uplinks {
            let (near, far) = (rig.device("n"), rig.device("f"));
            wires.push(Veth::new(&near, &far, far_side.namespace())?);
            let _ = write!(host, "[[uplink]]\nname = \"up{number}\"\ndevice = \"{near}\"\n");
            // Open vSwitch assumes complete checksums in frames received from a veth device.
            run(&["ethtool", "-K", &near, "tx", "off"])?;
            far_ends.push(far);
        }
        let device = far_side.join(rig, &far_ends)?;
        far_side.namespace().address(&device, &format!("{EXTERNAL_ADDRESS}/24"))?;
        let guests: Vec<NamespaceGuest> = (0..plan.guests)
            .map(|number| NamespaceGuest::new(rig, &format!("vm{number}"), 10 + number))
            .collect::<Result<_>>()?;
        for guest in &guests {
            host += &guest.nic_toml("wan", "");
        }
        let daemon = Daemon::start(rig, &host)?;
        for guest in &guests {
            guest.bring_up()?;
        }
        let testbed = Self { daemon, guests, _wires: wires, far: far_side };
        wait_until("guests with access to the outside", limit, || {
            Ok(testbed
                .guests
                .iter()
                .all(|guest| guest.namespace.ping(EXTERNAL_ADDRESS).unwrap_or(false)))
        })?;
        Ok(testbed)
    }

    /// Returns the namespace of the external network.
    pub(crate) fn external_namespace(&self) -> &Namespace {
        self.far.namespace()
    }

    pub(crate) fn set_max_workers(&self, number: u16) -> Result<()> {
        let setting = format!("max_workers={number}");
        self.daemon.ok(&["vmq", "set", "team", &setting]).map(drop)
    }

    /// Returns the bytes carried by all NICs in both directions.
    pub(crate) fn nic_bytes(&self) -> Result<NicBytes> {
        let nics = self.get("/1.0/nics")?;
        let nics = nics.as_array().context("the response has no list of NICs")?;
        let bytes = |nic: &Value, key: &str| nic["counters"][key].as_u64().unwrap_or(0);
        let bytes = nics.iter().map(|nic| bytes(nic, "rx_bytes") + bytes(nic, "tx_bytes"));
        Ok(NicBytes { time: Instant::now(), bytes: bytes.sum() })
    }

    /// Returns the current assignment of queues, and the throughput between two readings of the
    /// NICs' bytes.
    pub(crate) fn read_second(
        &self,
        started: Instant,
        before: &NicBytes,
        now: &NicBytes,
    ) -> Result<SecondSample> {
        let vmq = self.get("/1.0/vmq/team")?;
        let list = vmq["workers"].as_array().context("the response has no workers")?;
        let number = |worker: &Value, key: &str| worker[key].as_u64().unwrap_or(0);
        let span = now.time.duration_since(before.time).as_secs_f64();
        let bits_per_second = now.bytes.wrapping_sub(before.bytes) as f64 * 8.0 / span;
        let processors = list.iter().map(|worker| WorkerLoad {
            worker: number(worker, "worker"),
            queues: number(worker, "queues"),
            load_percent: number(worker, "load_ppm") as f64 / 1e4,
        });
        Ok(SecondSample {
            at_s: started.elapsed().as_secs_f64(),
            bits_per_second,
            workers: processors.collect(),
        })
    }

    fn get(&self, path: &str) -> Result<Value> {
        let answer = self.daemon.http("GET", path, None)?;
        anyhow::ensure!(answer.status == 200, "GET {path}: {} {}", answer.status, answer.text);
        Ok(answer.json)
    }
}
