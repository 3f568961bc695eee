//! Delivered rates of disks under other limits.
//!
//! Requests arrive in the recorded order: each after the completion that it followed, with the
//! recorded delay, so that a client with a small queue depth submits no earlier than possible. The
//! service time of a request at the device is that of the disk's request with the same number.
//! Changes of the device's speed under a different mix are therefore not modelled.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;

use anyhow::{Result, bail};
use suimon_quantity::{DiskId, Iops, Time};
use suimon_recording::{
    ObjectNames, RecordError, StoreInput, decode_store_initial_state, decode_store_input,
};
use suimon_storage_qos::{
    CompletedRequests, ConfigStep, DiskSlot, FlowSlot, IoKind, Limits, LimitsOwner,
    MINIMUMS_PERCENT_MAX, NextAction, SAMPLE_INTERVAL, StoreScheduler, StoreSpec, SubmitOutcome,
    Weight,
};

use crate::recording::calculation::{Row, WhatIf};
use crate::recording::settings::{Setting, SettingSubject};

/// Recorded submission of a request.
#[derive(Clone, Copy, Debug)]
struct SubmittedRequest {
    bytes: u32,
    /// Number of requests of the disk that had completed when it was submitted.
    after: u32,
    /// Delay in ns after the last of these completions; the time of the submission if there was
    /// none.
    gap_ns: u64,
}

/// Recorded activity of a disk.
#[derive(Clone, Debug, Default)]
struct DiskActivity {
    id: Option<DiskId>,
    requests: Vec<SubmittedRequest>,
    latencies: Vec<(IoKind, u64)>,
    operations: u64,
    last_ns: u64,
    first_ns: Option<u64>,
}

/// What-if calculation for disks under other limits; the module documentation states its
/// assumptions.
pub(crate) struct DisksWhatIf {
    spec: StoreSpec,
    settings: Vec<Setting>,
    changes: Vec<(Time, ConfigStep)>,
    disks: BTreeMap<u32, DiskActivity>,
    end: Time,
    /// Time at which several workers began to share the store, if they did. The calculation ends
    /// there.
    shared: Option<Time>,
}

impl DisksWhatIf {
    pub(crate) fn begin(initial_state: &[u8], settings: Vec<Setting>) -> Result<Self> {
        Ok(Self {
            spec: decode_store_initial_state(initial_state)?,
            settings,
            changes: Vec::new(),
            disks: BTreeMap::new(),
            end: Time::ZERO,
            shared: None,
        })
    }

    fn arrive(&mut self, time: Time, slot: DiskSlot, bytes: u32) {
        let disk = self.disks.entry(slot.0).or_default();
        disk.first_ns.get_or_insert(time.as_ns());
        let after = u32::try_from(disk.latencies.len()).unwrap_or(u32::MAX);
        let since = if after == 0 { 0 } else { disk.last_ns };
        disk.requests.push(SubmittedRequest {
            bytes,
            after,
            gap_ns: time.as_ns().saturating_sub(since),
        });
    }

    fn complete(&mut self, time: Time, slot: DiskSlot, completed: CompletedRequests) {
        let disk = self.disks.entry(slot.0).or_default();
        // Completions without a recorded submission are ignored.
        let open = disk.requests.len() - disk.latencies.len().min(disk.requests.len());
        let requests = completed.requests.min(u32::try_from(open).unwrap_or(u32::MAX));
        let latency_ns =
            completed.latency_sum_ns.unwrap_or_default() / u64::from(completed.requests.max(1));
        disk.latencies.extend((0..requests).map(|_| (completed.operation, latency_ns)));
        let cost = self.spec.normalization.cost(completed.bytes);
        disk.operations += u64::from(cost) * u64::from(requests);
        disk.last_ns = time.as_ns();
    }

    /// Returns the limits with those changed settings that apply to the disk.
    ///
    /// # Errors
    /// A setting is unknown or invalid.
    fn set(&self, disk: &str, mut limits: Limits) -> Result<Limits> {
        for setting in
            self.settings.iter().filter(|setting| setting.applies_to(SettingSubject::Disk, disk))
        {
            let rate = || -> Result<Option<Iops>> {
                Ok(setting.value::<Option<u64>>()?.and_then(Iops::new))
            };
            match setting.field.as_str() {
                "min_iops" => limits.min_iops = rate()?,
                "max_iops" => limits.max_iops = rate()?,
                "weight" => limits.weight = setting.value::<Weight>()?,
                _ => return setting.unknown_setting_error("min_iops, max_iops and weight"),
            }
        }
        limits.check()?;
        Ok(limits)
    }

    fn changed(&self, names: &ObjectNames, change: ConfigStep) -> Result<ConfigStep> {
        let ConfigStep::SetFlow { flow, owner: LimitsOwner::Disk(id), limits } = change else {
            return Ok(change);
        };
        let limits = self.set(&disk_name(names, id), limits)?;
        Ok(ConfigStep::SetFlow { flow, owner: LimitsOwner::Disk(id), limits })
    }

    fn record_slot(&mut self, change: &ConfigStep) {
        if let ConfigStep::SetDisk { slot, disk, .. } = change {
            self.disks.entry(slot.0).or_default().id = Some(*disk);
        }
    }
}

fn disk_name(names: &ObjectNames, disk: DiskId) -> String {
    names.disks.get(&disk.0).cloned().unwrap_or_else(|| disk.0.to_string())
}

impl WhatIf for DisksWhatIf {
    fn step(&mut self, time: Time, input: &[u8]) -> Result<(), RecordError> {
        if self.shared.is_some() {
            return Ok(());
        }
        self.end = self.end.max(time);
        match decode_store_input(input)? {
            StoreInput::Submit { slot, bytes, .. } => self.arrive(time, slot, bytes),
            StoreInput::SubmitBatch { slot, sizes, .. } => {
                sizes.into_iter().for_each(|bytes| self.arrive(time, slot, bytes));
            }
            StoreInput::Completed { slot, requests: completed } => {
                self.complete(time, slot, completed);
            }
            StoreInput::NotExecuted { slot, bytes } => {
                let operation = IoKind::Other;
                let completed =
                    CompletedRequests { operation, bytes, requests: 1, latency_sum_ns: None };
                self.complete(time, slot, completed);
            }
            StoreInput::Change(change) => {
                self.record_slot(&change);
                self.changes.push((time, change));
            }
            StoreInput::Share(_) => self.shared = Some(time),
            _ => {}
        }
        Ok(())
    }

    fn calculate(&self, names: &ObjectNames) -> Result<(Vec<Row>, Vec<String>)> {
        let disk_names: BTreeSet<String> =
            self.disks.values().filter_map(|disk| Some(disk_name(names, disk.id?))).collect();
        if !self.settings.iter().any(|setting| {
            disk_names.iter().any(|name| setting.applies_to(SettingSubject::Disk, name))
        }) {
            return Ok((Vec::new(), Vec::new()));
        }
        let changes = self.changes.iter();
        let changes: Result<Vec<_>> = changes
            .map(|(change_time, change)| Ok((*change_time, self.changed(names, *change)?)))
            .collect();
        let changes = changes?;
        let mut notes = vec![
            "each request is submitted as long after the preceding completion as recorded, and \
             takes the recorded time in the device"
                .to_owned(),
        ];
        notes.extend(rejection_reason(&changes));
        if let Some(shared_from) = self.shared {
            let text = "several workers used the store from then on, which what-if does not model";
            notes.push(format!("until {shared_from}: {text}"));
        }
        let result = Run::new(self, changes).run();
        let mut rows = Vec::new();
        for (slot, disk) in &self.disks {
            let (Some(id), Some(first)) = (disk.id, disk.first_ns) else { continue };
            let Some(outcome) = result.get(slot) else { continue };
            let rate = |operations: u64, until: u64| {
                let ns = u128::from(until.saturating_sub(first).max(1));
                (u128::from(operations) * 1_000_000_000 / ns).to_string()
            };
            let until = if outcome.is_out { outcome.last_ns } else { self.end.as_ns() };
            let name = disk_name(names, id);
            let (recorded_rate, what_if_rate) =
                (rate(disk.operations, self.end.as_ns()), rate(outcome.operations, until));
            rows.push(Row::new(
                format!("{name}: operations per second"),
                recorded_rate,
                what_if_rate,
            ));
            if outcome.is_out {
                let seconds = until.saturating_sub(first) as f64 / 1e9;
                notes.push(format!("{name} completed all recorded requests after {seconds:.1} s"));
            }
        }
        match self.shared {
            Some(shared_from) if rows.is_empty() => bail!(
                "several workers used the store of these disks from {shared_from} on, before the \
                 first request, which what-if does not model; record with one worker \
                 (`floating_workers = 1` of [host])"
            ),
            _ => Ok((rows, notes)),
        }
    }
}

/// Returns the reason for which the store would have rejected the minimums; `None` if it would have
/// accepted them.
fn rejection_reason(changes: &[(Time, ConfigStep)]) -> Option<String> {
    let (mut flows, mut capability) = (BTreeMap::<FlowSlot, u64>::new(), None);
    for (_, change) in changes {
        match change {
            ConfigStep::SetFlow { flow, limits, .. } => {
                flows.insert(*flow, limits.min_iops.map_or(0, |min| min.per_second()));
            }
            ConfigStep::RemoveFlow(flow) => {
                flows.remove(flow);
            }
            ConfigStep::SetCapacity(iops) => capability = *iops,
            _ => {}
        }
        let sum: u64 = flows.values().sum();
        let max_sum = capability.map(|iops| iops * MINIMUMS_PERCENT_MAX / 100);
        if let Some(max_sum) = max_sum.filter(|max_sum| sum > *max_sum) {
            return Some(format!(
                "the sum of the minimums, {sum} IOPS, would be rejected; the permitted sum is \
                 {max_sum} IOPS, {MINIMUMS_PERCENT_MAX} % of the store's capacity"
            ));
        }
    }
    None
}

/// Simulated result of a disk under the changed limits.
#[derive(Clone, Debug, Default)]
struct Did {
    operations: u64,
    last_ns: u64,
    /// True if all recorded requests were completed in the calculation.
    is_out: bool,
}

/// State of a disk while the recorded requests are replayed under the changed limits.
#[derive(Debug, Default)]
struct ReplayedDisk {
    /// Index of the next request to submit.
    next: usize,
    /// Time in ns at which the previous request was submitted.
    submitted_ns: u64,
    is_coming: bool,
    /// Sizes of queued requests in bytes.
    waiting: VecDeque<u32>,
    sent: usize,
    latencies_ns: Vec<u64>,
    operations: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Change(usize),
    Completion { slot: u32, operation: IoKind, bytes: u32, latency_ns: u64 },
    Arrive { slot: u32 },
    Sample,
    Wake,
}

/// Calculation in progress: recorded requests, and a scheduler with the changed limits.
struct Run<'r> {
    recorded: &'r DisksWhatIf,
    scheduler: StoreScheduler,
    changes: Vec<(Time, ConfigStep)>,
    replayed: BTreeMap<u32, ReplayedDisk>,
    agenda: BinaryHeap<Reverse<(u64, u64, Due)>>,
    number: u64,
}

impl<'r> Run<'r> {
    fn new(what_if: &'r DisksWhatIf, changes: Vec<(Time, ConfigStep)>) -> Self {
        let scheduler = StoreScheduler::new(what_if.spec.clone());
        let (replayed, agenda) = (BTreeMap::new(), BinaryHeap::new());
        let mut run = Self { recorded: what_if, scheduler, changes, replayed, agenda, number: 0 };
        for (number, (change_time, _)) in run.changes.clone().into_iter().enumerate() {
            run.plan(change_time.as_ns(), Due::Change(number));
        }
        let firsts = what_if.disks.values().filter_map(|recorded| recorded.first_ns);
        if let Some(first) = firsts.min() {
            run.plan(first, Due::Sample);
        }
        for slot in what_if.disks.keys() {
            run.replayed.insert(*slot, ReplayedDisk::default());
            run.expect(*slot);
        }
        run
    }

    fn plan(&mut self, time: u64, next: Due) {
        self.number += 1;
        self.agenda.push(Reverse((time, self.number, next)));
    }

    /// Plans the submission of the disk's next request, once the completion that it follows is
    /// known.
    fn expect(&mut self, slot: u32) {
        let (Some(recorded), Some(replayed)) =
            (self.recorded.disks.get(&slot), self.replayed.get_mut(&slot))
        else {
            return;
        };
        let Some(arrival) = recorded.requests.get(replayed.next).filter(|_| !replayed.is_coming)
        else {
            return;
        };
        let since = match arrival.after {
            0 => Some(0),
            after => replayed.latencies_ns.get(after as usize - 1).copied(),
        };
        let Some(since) = since else { return };
        replayed.is_coming = true;
        let due_ns = since.saturating_add(arrival.gap_ns).max(replayed.submitted_ns);
        self.plan(due_ns, Due::Arrive { slot });
    }

    fn run(mut self) -> BTreeMap<u32, Did> {
        let end = self.recorded.end.as_ns();
        while let Some(Reverse((due_ns, _, next))) = self.agenda.pop() {
            if due_ns > end {
                break;
            }
            self.handle(Time::from_ns(due_ns), next);
        }
        let outcomes = self.replayed.iter().map(|(slot, replayed)| {
            let total = self.recorded.disks.get(slot).map_or(0, |recorded| recorded.requests.len());
            let last_ns = replayed.latencies_ns.last().copied().unwrap_or_default();
            let is_out = replayed.latencies_ns.len() >= total && last_ns + 100_000_000 < end;
            (*slot, Did { operations: replayed.operations, last_ns, is_out })
        });
        outcomes.collect()
    }

    fn handle(&mut self, now: Time, next: Due) {
        match next {
            Due::Change(number) => {
                if let Some((_, change)) = self.changes.get(number).copied() {
                    self.scheduler.apply(now, change);
                }
            }
            Due::Arrive { slot } => self.arrive(now, slot),
            Due::Completion { slot, operation, bytes, latency_ns } => {
                let latency_ns = Some(latency_ns);
                let completed =
                    CompletedRequests { operation, bytes, requests: 1, latency_sum_ns: latency_ns };
                self.scheduler.handle_completed_requests(now, DiskSlot(slot), completed);
                if let Some(replayed) = self.replayed.get_mut(&slot) {
                    replayed.latencies_ns.push(now.as_ns());
                    replayed.operations += u64::from(self.recorded.spec.normalization.cost(bytes));
                }
                self.expect(slot);
            }
            Due::Sample => {
                self.scheduler.observe(now);
                self.plan((now + SAMPLE_INTERVAL).as_ns(), Due::Sample);
            }
            Due::Wake => {}
        }
        while let NextAction::Dispatch { disk, .. } = self.scheduler.poll(now) {
            let replayed = self.replayed.get_mut(&disk.0);
            if let Some(bytes) = replayed.and_then(|replayed| replayed.waiting.pop_front()) {
                self.send(now, disk.0, bytes);
            }
        }
        if let Some(deadline) = self.scheduler.next_deadline().filter(|deadline| *deadline > now) {
            let is_planned =
                self.agenda.peek().is_some_and(|Reverse((next, ..))| *next <= deadline.as_ns());
            if !is_planned {
                self.plan(deadline.as_ns(), Due::Wake);
            }
        }
    }

    fn arrive(&mut self, now: Time, slot: u32) {
        let Some(replayed) = self.replayed.get_mut(&slot) else { return };
        let Some(arrival) = self
            .recorded
            .disks
            .get(&slot)
            .and_then(|recorded| recorded.requests.get(replayed.next))
        else {
            return;
        };
        match self.scheduler.submit(now, DiskSlot(slot), arrival.bytes, slot) {
            Ok(submitted) => {
                replayed.next += 1;
                replayed.is_coming = false;
                replayed.submitted_ns = now.as_ns();
                match submitted {
                    SubmitOutcome::Dispatch => self.send(now, slot, arrival.bytes),
                    SubmitOutcome::Queued => replayed.waiting.push_back(arrival.bytes),
                }
                self.expect(slot);
            }
            // The scheduler has no room. The request is submitted again later.
            Err(_) => {
                let later = now + Duration::from_millis(1);
                self.plan(later.as_ns(), Due::Arrive { slot });
            }
        }
    }

    fn send(&mut self, now: Time, slot: u32, bytes: u32) {
        let latencies = self.recorded.disks.get(&slot).map(|recorded| &recorded.latencies);
        let Some(replayed) = self.replayed.get_mut(&slot) else { return };
        let latency =
            latencies.and_then(|latencies| latencies.get(replayed.sent).or(latencies.last()));
        let (operation, latency_ns) = latency.copied().unwrap_or_default();
        replayed.sent += 1;
        let time = now.as_ns().saturating_add(latency_ns);
        self.plan(time, Due::Completion { slot, operation, bytes, latency_ns });
    }
}
