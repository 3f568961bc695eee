//! Benchmark of the receive direction: frames arriving over the wires are switched into a VM. A
//! program in C sends at the far ends.
//!
//! The sender shares a CPU with the VM, so the switch is not saturated and polls without result in
//! between. Therefore the worker's time without empty polls is measured, as its stages report it.

use std::thread;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use suimon_rig::Daemon;

use crate::c_program::{Needs, compile};
use crate::outward::{EgressPath, Outgoing, Outward, WARM_UP, WINDOW};
use crate::report::Sample;
use crate::vhost_user::{GUESTS, SWITCHING};

const SOURCE: &str = include_str!("flood.c");
/// Source address of testpmd's `flowgen`, which the switch learns as the VM's address.
const VM_MAC: &str = "000102030400";
const FAR_MAC: &str = "000102030401";

/// Measurement of a VM that only receives frames.
pub(crate) struct Inward {
    outward: Outward,
    flows: String,
    program: String,
}

/// Work of a worker so far.
struct Worked {
    ns: u64,
    /// Frames delivered to the VM.
    frames: u64,
}

impl Inward {
    /// Starts `of.flows` flows that arrive over uplinks with `of.driver`.
    ///
    /// # Errors
    /// A component did not start, or there is no compiler.
    pub(crate) fn start(outgoing: Outgoing) -> Result<Self> {
        let mut outward = Outward::start(outgoing)?;
        let program = compile(&outward.rig, "flood", SOURCE, Needs::Nothing)?;
        // The switch learns the VM's address.
        outward.ns_per_frame()?;
        outward.testpmd.ask("set fwd rxonly")?;
        Ok(Self { outward, flows: outgoing.flows.to_string(), program })
    }

    /// Measures the worker's time per frame that arrives over all wires of this path, in
    /// nanoseconds.
    ///
    /// # Errors
    /// No frame arrives, or a component has stopped.
    pub(crate) fn ns_per_frame(&mut self, egress_path: EgressPath) -> Result<Sample> {
        self.outward.set_egress_path(egress_path)?;
        let Outward { testpmd, daemon, wires, rig } = &mut self.outward;
        let cpu = GUESTS.to_string();
        let mut arguments =
            vec!["taskset", "-c", &cpu, &self.program, VM_MAC, FAR_MAC, &self.flows];
        arguments.extend(wires.ends()[egress_path.wires()].iter().map(String::as_str));
        Sample::take([SWITCHING, GUESTS], || {
            testpmd.ask("start")?;
            let mut flood = wires.far().start(rig, "flood", &arguments)?;
            thread::sleep(WARM_UP);
            let before = Worked::query(daemon)?;
            thread::sleep(WINDOW);
            let after = Worked::query(daemon)?;
            flood.check_running()?;
            drop(flood);
            testpmd.stop()?;
            ensure!(after.frames > before.frames, "no frame arrived");
            Ok((after.ns - before.ns) as f64 / (after.frames - before.frames) as f64)
        })
    }
}

impl Worked {
    fn query(daemon: &Daemon) -> Result<Self> {
        let top = daemon.http("GET", "/1.0/top", None)?.json;
        Self::parse(&top).with_context(|| format!("no stages or no counters: {top}"))
    }

    fn parse(top: &Value) -> Option<Self> {
        let stages = top["workers"][0]["stages"].as_object()?;
        let in_vain = ["poll_ns", "idle_ns"];
        let working = stages.iter().filter(|(name, _)| !in_vain.contains(&name.as_str()));
        let nics = top["nics"].as_array()?;
        Some(Self {
            ns: working.map(|(_, ns)| ns.as_u64()).sum::<Option<u64>>()?,
            frames: nics.iter().find(|nic| nic["name"] == "vm")?["tx_frames"].as_u64()?,
        })
    }
}
