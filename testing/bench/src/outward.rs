//! Benchmark of the complete transmit path: a VM sends continuously through the switch, by an
//! uplink or a team, over a wire to an end where frames are counted and dropped.
//!
//! The wire is a veth pair: its driver passes each frame to the far end's network stack, in the
//! sender's CPU time. This is a part of the path, as a NIC's driver would be, and equal for all
//! compared switches.

use std::fmt;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use suimon_rig::{Daemon, Rig, Testpmd, TestpmdSpec, wait_until};

use crate::cpu_times::CpuTimes;
use crate::report::Sample;
use crate::vhost_user::{GUESTS, MACS, SWITCHING};
use crate::wires::{FAR_MAC, Wires};

pub(crate) const WARM_UP: Duration = Duration::from_millis(300);
pub(crate) const WINDOW: Duration = Duration::from_secs(1);
/// Names in the host file.
const SINGLE: &str = "single";
const TEAM: &str = "both";
pub(crate) const LEARN_LIMIT: Duration = Duration::from_secs(10);
/// Length of the frame check sequence, which testpmd's lengths include.
const FCS_BYTES: u16 = 4;

/// Load that the VM sends, and driver of the uplinks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    /// Name of the driver of the uplinks, as in the configuration.
    pub(crate) driver: &'static str,
    /// Number of destinations, used in turn.
    pub(crate) flows: u16,
    /// Number of queue pairs of the VM's NIC, used in turn.
    pub(crate) queues: u16,
}

impl fmt::Display for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { driver, flows, .. } = self;
        let plural = if *flows == 1 { "" } else { "s" };
        write!(f, "veth, `{driver}`, {flows} flow{plural}")
    }
}

/// Single uplink or team through which the switch sends frames.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EgressPath {
    Uplink,
    /// Two uplinks in this mode, with this algorithm.
    Team(&'static str, &'static str),
}

impl EgressPath {
    /// Returns the wires that it uses.
    pub(crate) const fn wires(self) -> Range<usize> {
        match self {
            Self::Uplink => 0..1,
            Self::Team(..) => 1..3,
        }
    }
}

/// Complete setup, ready to send. Fields are dropped from the top.
pub(crate) struct Outward {
    pub(crate) testpmd: Testpmd,
    pub(crate) daemon: Daemon,
    pub(crate) wires: Wires,
    pub(crate) rig: Rig,
}

impl Outward {
    /// Starts the setup with one CPU for the worker and one for the VM.
    ///
    /// # Errors
    /// A component did not start.
    pub(crate) fn start(outgoing: Outgoing) -> Result<Self> {
        let rig = Rig::new()?;
        let wires = Wires::new(&rig, 3, None)?;
        let sockets = [rig.path("vh0.sock"), rig.path("vh1.sock")];
        let daemon = Daemon::start(&rig, &host_file(outgoing, wires.near(), &sockets))?;
        let testpmd = generator(&rig, sockets, outgoing.flows, outgoing.queues)?;
        let outward = Self { testpmd, daemon, wires, rig };
        outward.set_egress_path(EgressPath::Uplink)?;
        Ok(outward)
    }

    /// Selects the uplink or team by which frames leave. Unused uplinks are closed.
    ///
    /// # Errors
    /// The daemon rejected the change, or the far end's address was not learned there.
    pub(crate) fn set_egress_path(&self, egress_path: EgressPath) -> Result<()> {
        let name = match egress_path {
            EgressPath::Uplink => SINGLE,
            EgressPath::Team(mode, algorithm) => {
                let arguments = ["team", "set", TEAM, "--mode", mode, "--algorithm", algorithm];
                self.daemon.ok(&arguments)?;
                TEAM
            }
        };
        self.daemon.ok(&["switch", "set", "wan", "--uplink", name])?;
        wait_learned(&self.daemon, &self.wires, name, egress_path.wires().start)
    }

    /// Changes a VMQ setting of the only uplink, such as `enabled=off`.
    ///
    /// # Errors
    /// The daemon rejected the change.
    pub(crate) fn set_vmq(&self, setting: &str) -> Result<()> {
        self.daemon.ok(&["vmq", "set", SINGLE, setting]).map(drop)
    }

    /// Measures the CPU time of the whole daemon per frame that arrives, in nanoseconds.
    ///
    /// # Errors
    /// No frame arrives, or a component has stopped.
    pub(crate) fn ns_per_frame(&mut self) -> Result<Sample> {
        let Self { testpmd, daemon, wires, .. } = self;
        let process = daemon.process().id();
        sending(testpmd, || {
            let (frames, used) = (wires.arrived()?, CpuTimes::read(process)?);
            thread::sleep(WINDOW);
            let frames = wires.arrived()? - frames;
            let used = CpuTimes::read(process)?.since(&used);
            ensure!(frames > 0, "no frame arrived");
            Ok(used as f64 / frames as f64)
        })
    }
}

/// Waits until the switch `wan` has learned the far end's address on this port, so that it does not
/// flood.
///
/// # Errors
/// The address is not learned from this wire.
pub(crate) fn wait_learned(daemon: &Daemon, wires: &Wires, port: &str, wire: usize) -> Result<()> {
    wait_until("address of the far end", LEARN_LIMIT, || {
        wires.announce(wire)?;
        let addresses = daemon.json(&["switch", "addresses", "wan"])?;
        let is_far = |address_entry: &Value| {
            address_entry["mac"] == FAR_MAC && address_entry["port"] == port
        };
        Ok(addresses.as_array().is_some_and(|addresses| addresses.iter().any(is_far)))
    })
}

/// Measures frames arriving at the wires' far ends, in millions per second.
///
/// # Errors
/// No frame arrives, or a component has stopped.
pub(crate) fn arriving(testpmd: &mut Testpmd, wires: &Wires) -> Result<Sample> {
    sending(testpmd, || {
        let (frames, started) = (wires.arrived()?, Instant::now());
        thread::sleep(WINDOW);
        let frames = wires.arrived()? - frames;
        ensure!(frames > 0, "no frame arrived");
        Ok(frames as f64 / started.elapsed().as_secs_f64() / 1e6)
    })
}

/// Measures while the VM sends. The distance of the CPUs is measured while it does not.
fn sending(testpmd: &mut Testpmd, measure: impl FnOnce() -> Result<f64>) -> Result<Sample> {
    Sample::take([SWITCHING, GUESTS], || {
        testpmd.ask("start")?;
        thread::sleep(WARM_UP);
        let measured = measure();
        testpmd.stop()?;
        measured
    })
}

/// Starts a VM with two NICs, of which the first sends 64-byte frames to [`FAR_MAC`].
///
/// # Errors
/// The VM did not start.
pub(crate) fn generator(
    rig: &Rig,
    sockets: [String; 2],
    flows: u16,
    queues: u16,
) -> Result<Testpmd> {
    let mut spec = TestpmdSpec::new(sockets, MACS.map(str::to_owned));
    spec.listens = true;
    spec.cpus = [SWITCHING, GUESTS];
    spec.queues = queues;
    spec.mode = "flowgen".to_owned();
    spec.extra = vec!["--portmask=0x1".to_owned(), format!("--flowgen-flows={flows}")];
    let mut testpmd = Testpmd::start(rig, &spec)?;
    set_bytes(&mut testpmd, 64)?;
    Ok(testpmd)
}

/// Sets the frame length in bytes, without the check sequence.
///
/// # Errors
/// The VM no longer runs.
pub(crate) fn set_bytes(testpmd: &mut Testpmd, bytes: u16) -> Result<()> {
    testpmd.ask(&format!("set txpkts {}", bytes + FCS_BYTES)).map(drop).context("set txpkts")
}

/// Returns the configuration of a switch with an uplink, a team to change to, and the VM.
fn host_file(outgoing: Outgoing, devices: &[String], sockets: &[String; 2]) -> String {
    let Outgoing { driver, queues, .. } = outgoing;
    let mut host = format!(
        "[host]\nworker_cpus = [{SWITCHING}]\n\
         [[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"{SINGLE}\"\n\
         [[team]]\nname = \"{TEAM}\"\nmembers = [\"left\", \"right\"]\nmode = \"static\"\n"
    );
    host.push_str(&uplinks([SINGLE, "left", "right"], devices, driver));
    host.push_str(&vm(sockets, queues));
    host
}

/// Returns the configuration of uplinks with these names on these devices.
pub(crate) fn uplinks<'n>(
    names: impl IntoIterator<Item = &'n str>,
    devices: &[String],
    driver: &str,
) -> String {
    let uplink = |(name, device)| {
        format!("[[uplink]]\nname = \"{name}\"\ndevice = \"{device}\"\ndriver = \"{driver}\"\n")
    };
    names.into_iter().zip(devices).map(uplink).collect()
}

/// Returns the configuration of [`generator`]'s NICs: the first on switch `wan`, the second, idle,
/// on a separate switch.
pub(crate) fn vm(sockets: &[String; 2], queues: u16) -> String {
    let mut text = "[[switch]]\nname = \"quiet\"\nkind = \"private\"\n".to_owned();
    for ((name, switch), socket) in [("vm", "wan"), ("spare", "quiet")].iter().zip(sockets) {
        text.push_str(&format!(
            "[[nic]]\nname = \"{name}\"\nswitch = \"{switch}\"\nbackend = \"vhost-user\"\n\
             socket = \"{socket}\"\nmode = \"client\"\nqueues = {queues}\n"
        ));
    }
    text
}
