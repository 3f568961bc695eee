//! Checkers of CPUs, routes, switches and clocks.

use std::collections::{BTreeMap, BTreeSet};

use suimon_power::PowerPlan;
use suimon_quantity::Time;
use suimon_sim_kernel::{Checker, Complaints};

use crate::host::facts::Fact;
use crate::host::plan::Plan;

/// Returns all checkers of a case.
pub(crate) fn checkers(plan: &Plan<'_>) -> Vec<Box<dyn Checker<Fact>>> {
    vec![
        Box::new(Work::new(plan.machine.logical_cpus)),
        Box::new(RequestPaths::default()),
        Box::new(Switching::new(plan.vms.len() as u32)),
        Box::new(Clocks::new(plan)),
    ]
}

/// Checks that a CPU does one thing at a time, a worker is on one CPU, and no worker waits while a
/// CPU is idle.
pub(crate) struct Work {
    /// Worker that runs on each CPU.
    at: Vec<Option<u32>>,
    on: BTreeMap<u32, u16>,
    waits: BTreeSet<u32>,
    last: Time,
}

impl Work {
    pub(crate) fn new(logical_cpus: u16) -> Self {
        let at = vec![None; logical_cpus.into()];
        Self { at, on: BTreeMap::new(), waits: BTreeSet::new(), last: Time::ZERO }
    }
}

impl Checker<Fact> for Work {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Complaints) {
        if now > self.last {
            complaints.judged += 1;
            if !self.waits.is_empty() && self.at.iter().any(Option::is_none) {
                let what = format!("{:?} are queued while a CPU is idle", self.waits);
                complaints.add(self.last, "work", what);
                self.waits.clear();
            }
            self.last = now;
        }
        match *fact {
            Fact::Began { cpu, worker } => {
                self.waits.remove(&worker);
                if let Some(other) = self.at[usize::from(cpu)].replace(worker) {
                    let what = format!("{other} and {worker} run on CPU {cpu} at the same time");
                    complaints.add(now, "work", what);
                }
                if let Some(other) = self.on.insert(worker, cpu) {
                    let what = format!("{worker} runs on CPUs {other} and {cpu} at the same time");
                    complaints.add(now, "work", what);
                }
            }
            Fact::Stopped { cpu, worker } => {
                self.at[usize::from(cpu)] = None;
                self.on.remove(&worker);
            }
            Fact::Waits { worker } => {
                self.waits.insert(worker);
            }
            _ => {}
        }
    }
}

/// Checks that a session has one request at a time, which passes all its legs once and in order,
/// that a VM with a virtual function bypasses the host's queue, and that no two VMs have the same
/// function.
#[derive(Default)]
pub(crate) struct RequestPaths {
    /// By session: VM, next leg, and number of legs.
    in_progress: BTreeMap<u32, (u32, u32, u32)>,
    vfs: BTreeMap<u16, u32>,
}

impl Checker<Fact> for RequestPaths {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Complaints) {
        match *fact {
            Fact::RequestStarted { session, vm, legs } => {
                let before = self.in_progress.insert(session, (vm, 0, legs));
                let twice = before.map(|_| format!("session {session} has two requests in flight"));
                twice.into_iter().for_each(|what| complaints.add(now, "ways", what));
            }
            Fact::Passed { session, leg, by_queue } => {
                complaints.judged += 1;
                let Some((vm, next, _)) = self.in_progress.get_mut(&session) else {
                    let what = format!("session {session} received a response without a request");
                    return complaints.add(now, "ways", what);
                };
                if leg != *next {
                    let what = format!("session {session}: leg {leg} instead of {next}");
                    complaints.add(now, "ways", what);
                }
                *next = leg + 1;
                if by_queue && self.vfs.values().any(|owner| owner == vm) {
                    let what = format!("VM {vm} has a VF but uses the queue");
                    complaints.add(now, "ways", what);
                }
            }
            Fact::Done { session } => {
                let whole = self.in_progress.remove(&session).is_some_and(|(_, leg, of)| leg == of);
                if !whole {
                    let what = format!("session {session}: not all requests completed");
                    complaints.add(now, "ways", what);
                }
            }
            Fact::Vf { vm, vf } => {
                if let Some(other) = self.vfs.insert(vf, vm) {
                    let what = format!("VMs {other} and {vm} have the same VF {vf}");
                    complaints.add(now, "ways", what);
                }
            }
            _ => {}
        }
    }
}

/// Checks that frames between VMs arrive and do not leave the host, and that broadcasts reach all
/// other VMs.
pub(crate) struct Switching {
    vms: u32,
}

impl Switching {
    pub(crate) const fn new(vms: u32) -> Self {
        Self { vms }
    }
}

impl Checker<Fact> for Switching {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Complaints) {
        let Fact::Forwarded { vm, to, receivers: came_to, out } = *fact else { return };
        complaints.judged += 1;
        if vm == to && came_to + 1 != self.vms {
            let what =
                format!("a broadcast of VM {vm} reached {came_to} of {} other VMs", self.vms - 1);
            complaints.add(now, "switching", what);
        }
        if vm != to && (came_to != to || out) {
            let what = format!("VM {vm} sent to VM {to}: received by {came_to}, outside: {out}");
            complaints.add(now, "switching", what);
        }
    }
}

/// Checks that clocks are within the range of the power plan: no turbo with Balanced, nothing below
/// the requested lowest performance, and only the highest clock with High performance.
pub(crate) struct Clocks {
    allowed: Option<(u64, u64)>,
}

impl Clocks {
    pub(crate) fn new(plan: &Plan<'_>) -> Self {
        let of = plan.machine.energy.as_ref().zip(plan.case.power);
        let allowed = of.map(|(spec, asked)| {
            let nominal = spec.mhz.last().copied().unwrap_or_default();
            let lowest = spec.mhz.first().copied().unwrap_or_default();
            let turbo = spec.turbo_mhz.iter().copied().max().unwrap_or(nominal);
            let is_high = asked.plan == PowerPlan::HighPerformance;
            let usual = if is_high { 100 } else { 0 };
            let percent = u64::from(asked.performance_percent_min.unwrap_or(usual));
            let least = lowest.max(nominal * percent / 100);
            (least, if is_high { turbo.max(nominal) } else { nominal })
        });
        Self { allowed }
    }
}

impl Checker<Fact> for Clocks {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Complaints) {
        let (Fact::Clock { cpu, mhz }, Some((least, most))) = (fact, self.allowed) else { return };
        complaints.judged += 1;
        if *mhz < least || *mhz > most {
            let what = format!("CPU {cpu}: {mhz} MHz is outside of {least} to {most}");
            complaints.add(now, "clocks", what);
        }
    }
}
