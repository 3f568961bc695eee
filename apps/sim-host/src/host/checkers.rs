//! Checkers of CPUs, routes, switches and clocks.

use std::collections::{BTreeMap, BTreeSet};

use suimon_power::PowerPlan;
use suimon_quantity::Time;
use suimon_sim_kernel::{Checker, Violations};

use crate::host::facts::Fact;
use crate::host::resolved_case::ResolvedCase;

/// Returns all checkers of a case of a host scenario.
pub(crate) fn checkers(plan: &ResolvedCase<'_>) -> Vec<Box<dyn Checker<Fact>>> {
    vec![
        Box::new(CpuAssignmentChecker::new(plan.machine.logical_cpus)),
        Box::new(RequestPathChecker::default()),
        Box::new(SwitchingChecker::new(plan.vms.len() as u32)),
        Box::new(ClockChecker::new(plan)),
    ]
}

/// Checks that a CPU runs one worker at a time, that a worker runs on one CPU at a time, and that
/// no worker waits while a CPU is idle.
pub(crate) struct CpuAssignmentChecker {
    /// Worker that runs on each CPU.
    worker_by_cpu: Vec<Option<u32>>,
    cpu_by_worker: BTreeMap<u32, u16>,
    waits: BTreeSet<u32>,
    last: Time,
}

impl CpuAssignmentChecker {
    pub(crate) fn new(logical_cpus: u16) -> Self {
        let running = vec![None; logical_cpus.into()];
        Self {
            worker_by_cpu: running,
            cpu_by_worker: BTreeMap::new(),
            waits: BTreeSet::new(),
            last: Time::ZERO,
        }
    }
}

impl Checker<Fact> for CpuAssignmentChecker {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Violations) {
        if now > self.last {
            complaints.checks += 1;
            if !self.waits.is_empty() && self.worker_by_cpu.iter().any(Option::is_none) {
                let complaint = format!("{:?} are queued while a CPU is idle", self.waits);
                complaints.add(self.last, "work", complaint);
                self.waits.clear();
            }
            self.last = now;
        }
        match *fact {
            Fact::WorkerStarted { cpu, worker } => {
                self.waits.remove(&worker);
                if let Some(other) = self.worker_by_cpu[usize::from(cpu)].replace(worker) {
                    let complaint =
                        format!("{other} and {worker} run on CPU {cpu} at the same time");
                    complaints.add(now, "work", complaint);
                }
                if let Some(other) = self.cpu_by_worker.insert(worker, cpu) {
                    let complaint =
                        format!("{worker} runs on CPUs {other} and {cpu} at the same time");
                    complaints.add(now, "work", complaint);
                }
            }
            Fact::WorkerStopped { cpu, worker } => {
                self.worker_by_cpu[usize::from(cpu)] = None;
                self.cpu_by_worker.remove(&worker);
            }
            Fact::WorkerWaiting { worker } => {
                self.waits.insert(worker);
            }
            _ => {}
        }
    }
}

/// Checks that a session has one request at a time, which passes all its legs once and in order;
/// that the requests of a VM with a virtual function bypass the host's queue; and that no two VMs
/// have the same virtual function.
#[derive(Default)]
pub(crate) struct RequestPathChecker {
    /// Request in progress of each session: VM, index of the next leg, and number of legs.
    in_progress: BTreeMap<u32, (u32, u32, u32)>,
    vfs: BTreeMap<u16, u32>,
}

impl Checker<Fact> for RequestPathChecker {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Violations) {
        match *fact {
            Fact::RequestStarted { session, vm, legs } => {
                let before = self.in_progress.insert(session, (vm, 0, legs));
                let complaint =
                    before.map(|_| format!("session {session} has two requests in flight"));
                complaint.into_iter().for_each(|complaint| complaints.add(now, "ways", complaint));
            }
            Fact::LegCompleted { session, leg, is_queue_leg: by_queue } => {
                complaints.checks += 1;
                let Some((vm, next, _)) = self.in_progress.get_mut(&session) else {
                    let complaint =
                        format!("session {session} received a response without a request");
                    return complaints.add(now, "ways", complaint);
                };
                if leg != *next {
                    let complaint = format!("session {session}: leg {leg} instead of {next}");
                    complaints.add(now, "ways", complaint);
                }
                *next = leg + 1;
                if by_queue && self.vfs.values().any(|owner| owner == vm) {
                    let complaint = format!("VM {vm} has a VF but uses the queue");
                    complaints.add(now, "ways", complaint);
                }
            }
            Fact::RequestCompleted { session } => {
                let is_complete = self
                    .in_progress
                    .remove(&session)
                    .is_some_and(|(_, leg, expected_leg)| leg == expected_leg);
                if !is_complete {
                    let complaint = format!("session {session}: not all requests completed");
                    complaints.add(now, "ways", complaint);
                }
            }
            Fact::VfAssigned { vm, vf } => {
                if let Some(other) = self.vfs.insert(vf, vm) {
                    let complaint = format!("VMs {other} and {vm} have the same VF {vf}");
                    complaints.add(now, "ways", complaint);
                }
            }
            _ => {}
        }
    }
}

/// Checks that frames between VMs arrive and do not leave the host, and that broadcasts reach all
/// other VMs.
pub(crate) struct SwitchingChecker {
    vms: u32,
}

impl SwitchingChecker {
    pub(crate) const fn new(vms: u32) -> Self {
        Self { vms }
    }
}

impl Checker<Fact> for SwitchingChecker {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Violations) {
        let Fact::Forwarded { vm, to: target, receivers, has_left_host: out } = *fact else {
            return;
        };
        complaints.checks += 1;
        if vm == target && receivers + 1 != self.vms {
            let complaint =
                format!("a broadcast of VM {vm} reached {receivers} of {} other VMs", self.vms - 1);
            complaints.add(now, "switching", complaint);
        }
        if vm != target && (receivers != target || out) {
            let complaint =
                format!("VM {vm} sent to VM {target}: received by {receivers}, outside: {out}");
            complaints.add(now, "switching", complaint);
        }
    }
}

/// Checks that clocks are within the range of the power plan: no turbo with Balanced, nothing below
/// the requested lowest performance, and only the highest clock with High performance.
pub(crate) struct ClockChecker {
    allowed: Option<(u64, u64)>,
}

impl ClockChecker {
    pub(crate) fn new(plan: &ResolvedCase<'_>) -> Self {
        let energy = plan.machine.energy.as_ref().zip(plan.case.power);
        let allowed = energy.map(|(spec, power)| {
            let nominal = spec.mhz.last().copied().unwrap_or_default();
            let lowest = spec.mhz.first().copied().unwrap_or_default();
            let turbo = spec.turbo_mhz.iter().copied().max().unwrap_or(nominal);
            let is_high = power.plan == PowerPlan::HighPerformance;
            let usual = if is_high { 100 } else { 0 };
            let percent = u64::from(power.performance_percent_min.unwrap_or(usual));
            let low_mhz = lowest.max(nominal * percent / 100);
            (low_mhz, if is_high { turbo.max(nominal) } else { nominal })
        });
        Self { allowed }
    }
}

impl Checker<Fact> for ClockChecker {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Violations) {
        let (Fact::Clock { cpu, mhz }, Some((low_mhz, high_mhz))) = (fact, self.allowed) else {
            return;
        };
        complaints.checks += 1;
        if *mhz < low_mhz || *mhz > high_mhz {
            let complaint = format!("CPU {cpu}: {mhz} MHz is outside of {low_mhz} to {high_mhz}");
            complaints.add(now, "clocks", complaint);
        }
    }
}
