//! Budget of a store with its members: the workers that have disks of the store. All functions are
//! called under the lock of [`SharedBudget`](crate::SharedBudget) and do not block.

use std::collections::BTreeMap;
use std::sync::Arc;

use core::time::Duration;
use suimon_ports::Waker;
use suimon_quantity::{Time, WorkerId};
use suimon_recording::Recorded;
use suimon_storage_qos::{
    Borrower, ConfigStep, DiskQosStatus, DiskSlot, GRANT_AGE_MAX, GrantKind, ReturnedGrant,
    SAMPLE_INTERVAL, StoreBudget, StoreEvent, WorkerGrant, WorkerReport,
};

use crate::shared_budget::changes::add_pending_change;
use crate::shared_budget::pending_report::PendingReport;
use crate::shared_budget::sync::Flag;

/// Time without an exchange after which a worker with grants counts as absent. A worker that is not
/// blocked reports every 100 ms while it has requests.
pub const ABSENT_AFTER: Duration = Duration::from_millis(250);
/// Interval at which exchanges check for absent workers.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Flags of a worker that it reads without the lock.
#[derive(Default)]
pub(crate) struct MemberFlags<F> {
    /// True if the worker has grants or changes to fetch by an exchange.
    pub(crate) has_updates: F,
    /// True for the worker that made the last exchange. It must wake up for the budget's next
    /// deadline.
    pub(crate) is_deadline_keeper: F,
}

/// Worker that has disks of the store.
struct Member<F> {
    flags: Arc<MemberFlags<F>>,
    waker: Option<Arc<dyn Waker>>,
    /// Grants that the worker has not fetched, oldest first, each with the time of the grant.
    /// Bounded by the worker's queued requests and requested loans.
    grants: Vec<(Time, WorkerGrant)>,
    /// Time of the worker's last exchange.
    last_seen: Time,
}

impl<F: Flag> Member<F> {
    /// Adds a grant for the worker to fetch. Appends its waker to `to_wake` if it had nothing to
    /// fetch before.
    fn post(&mut self, now: Time, grant: WorkerGrant, to_wake: &mut Vec<Arc<dyn Waker>>) {
        self.grants.push((now, grant));
        self.notify(to_wake);
    }

    fn notify(&self, to_wake: &mut Vec<Arc<dyn Waker>>) {
        if !self.flags.has_updates.get() {
            self.flags.has_updates.set(true);
            to_wake.extend(self.waker.clone());
        }
    }
}

/// State of the periodic sampling of delivered operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SamplingState {
    /// Time of the last sample.
    pub(crate) sampled_at: Time,
    /// True if a request was submitted to the store since the last sample.
    pub(crate) has_new_requests: bool,
}

/// Budget of a store with its members.
pub(crate) struct BudgetState<F> {
    /// Budget; `None` after a worker has become the only user of the store and has taken it.
    budget: Option<Box<Recorded<StoreBudget>>>,
    members: BTreeMap<WorkerId, Member<F>>,
    /// Changes of the store that the next exchange applies to the budget.
    changes: Vec<ConfigStep>,
    keeper: Option<WorkerId>,
    /// Latest time of an exchange. The times of exchanges are not monotonic, because the members'
    /// rounds begin at different times.
    now: Time,
    observation: SamplingState,
    /// Time of the last check for absent workers.
    checked: Time,
}

impl<F: Flag> BudgetState<F> {
    /// Creates the state of a budget without members. `observation` is that of the scheduler before
    /// it became the budget.
    pub(crate) fn new(
        now: Time,
        budget: Recorded<StoreBudget>,
        observation: SamplingState,
    ) -> Self {
        Self {
            budget: Some(Box::new(budget)),
            members: BTreeMap::new(),
            changes: Vec::new(),
            keeper: None,
            now,
            observation,
            checked: now,
        }
    }

    /// Adds a worker, after removing its former membership, if any. Returns the worker's flags.
    pub(crate) fn join(
        &mut self,
        worker: WorkerId,
        waker: Option<Arc<dyn Waker>>,
        to_wake: &mut Vec<Arc<dyn Waker>>,
    ) -> Arc<MemberFlags<F>> {
        self.remove(worker, to_wake);
        let flags = Arc::<MemberFlags<F>>::default();
        // The first exchange arms the deadline of the budget.
        flags.has_updates.set(true);
        let (grants, last_seen) = (Vec::new(), self.now);
        let member = Member { flags: Arc::clone(&flags), waker, grants, last_seen };
        self.members.insert(worker, member);
        flags
    }

    /// Removes a worker. Returns false, with nothing changed, if it has grants to fetch.
    pub(crate) fn try_leave(
        &mut self,
        worker: WorkerId,
        to_wake: &mut Vec<Arc<dyn Waker>>,
    ) -> bool {
        if self.members.get(&worker).is_some_and(|member| !member.grants.is_empty()) {
            return false;
        }
        self.remove(worker, to_wake);
        true
    }

    /// Removes a worker. Grants that it has not fetched are returned to the budget.
    pub(crate) fn remove(&mut self, worker: WorkerId, to_wake: &mut Vec<Arc<dyn Waker>>) {
        self.remove_with(worker, &WorkerReport::default(), to_wake);
    }

    /// Removes a worker after applying its last report. All others are notified if one of them must
    /// take over the budget's deadline, or can use what the removed worker has returned.
    fn remove_with(
        &mut self,
        worker: WorkerId,
        last: &WorkerReport,
        to_wake: &mut Vec<Arc<dyn Waker>>,
    ) {
        let Some(member) = self.members.remove(&worker) else { return };
        let mut is_news =
            self.keeper == Some(worker) || !last.is_empty() || !member.grants.is_empty();
        self.keeper = self.keeper.filter(|keeper| *keeper != worker);
        if let Some(budget) = &mut self.budget {
            if !last.is_empty() {
                budget.handle_report(self.now, worker, last);
            }
            for (_, grant) in &member.grants {
                budget.handle_report(self.now, worker, &returned(*grant));
            }
            let before = budget.in_flight();
            budget.handle_worker_ended(self.now, worker);
            is_news |= budget.in_flight() != before;
        }
        if is_news {
            self.members.values().for_each(|member| member.notify(to_wake));
        }
    }

    /// Removes a worker that ends, after applying its last report. No-op if it has joined again
    /// meanwhile, so that `flags` are those of a former membership.
    pub(crate) fn end(
        &mut self,
        worker: WorkerId,
        flags: &Arc<MemberFlags<F>>,
        borrower: Option<&mut Borrower>,
        pending: &mut PendingReport,
    ) {
        if self.members.get(&worker).is_some_and(|member| Arc::ptr_eq(&member.flags, flags)) {
            let (last, to_wake) = pending.take_last(self.now, borrower);
            self.remove_with(worker, &last, to_wake);
        }
    }

    /// Adds changes for the next exchange. Returns false if there is no budget any more. Notifies
    /// all members: a worker that is leaving the store receives no command about the change, and
    /// cannot leave before it has fetched what it was notified of.
    pub(crate) fn add_changes(
        &mut self,
        changes: &[ConfigStep],
        to_wake: &mut Vec<Arc<dyn Waker>>,
    ) -> bool {
        if self.budget.is_none() {
            return false;
        }
        changes.iter().for_each(|change| add_pending_change(&mut self.changes, *change));
        self.members.values().for_each(|member| member.notify(to_wake));
        true
    }

    /// Applies pending changes, passes the grants of a worker to its borrower and the borrower's
    /// report to the budget, and distributes new grants. `now` is the time of the worker's round.
    /// Returns events of the store's scheduler.
    pub(crate) fn exchange(
        &mut self,
        now: Time,
        worker: WorkerId,
        borrower: &mut Borrower,
        pending: &mut PendingReport,
    ) -> Vec<StoreEvent> {
        let latest = self.now.max(now);
        self.now = latest;
        self.apply_changes(latest);
        self.fetch(now, worker, borrower);
        self.find_absent(worker);
        loop {
            pending.collect(now, borrower);
            let Some(budget) = &mut self.budget else { return Vec::new() };
            if !pending.report.is_empty() {
                budget.handle_report(latest, worker, &pending.report);
                pending.report.clear();
                self.observation.has_new_requests = true;
            }
            if !self.grant(now, worker, borrower, &mut pending.to_wake) {
                break;
            }
        }
        let events = self.observe();
        pending.next_budget_deadline = self.due();
        self.keep(worker);
        events
    }

    fn apply_changes(&mut self, now: Time) {
        if let Some(budget) = &mut self.budget {
            self.changes.drain(..).for_each(|change| budget.apply(now, change));
        }
    }

    /// Passes a worker's unfetched grants to its borrower. Grants older than [`GRANT_AGE_MAX`] are
    /// passed as late. Each grant has its own age: the first one is as old as the time between two
    /// exchanges of the worker, even if the others are younger.
    fn fetch(&mut self, now: Time, worker: WorkerId, borrower: &mut Borrower) {
        let Some(member) = self.members.get_mut(&worker) else { return };
        member.last_seen = self.now;
        member.flags.has_updates.set(false);
        for (granted_at, grant) in member.grants.drain(..) {
            if self.now > granted_at + GRANT_AGE_MAX {
                borrower.handle_late_grant(now, grant);
            } else {
                borrower.handle_grant(now, grant);
            }
        }
    }

    /// Reports to the budget the workers that have grants and have made no exchange for
    /// [`ABSENT_AFTER`]. `caller` is not absent.
    fn find_absent(&mut self, caller: WorkerId) {
        let latest = self.now;
        let Some(budget) = self.budget.as_mut().filter(|_| latest >= self.checked + CHECK_EVERY)
        else {
            return;
        };
        self.checked = latest;
        for (&worker, member) in self.members.iter().filter(|(worker, _)| **worker != caller) {
            if latest >= member.last_seen + ABSENT_AFTER && budget.has_grants(worker) {
                budget.handle_worker_absent(latest, worker);
            }
        }
    }

    /// Distributes all grants that are possible now. Returns true if the caller's own borrower
    /// received a grant that may change its report.
    fn grant(
        &mut self,
        now: Time,
        worker: WorkerId,
        borrower: &mut Borrower,
        to_wake: &mut Vec<Arc<dyn Waker>>,
    ) -> bool {
        let mut has_own = false;
        let Some(budget) = &mut self.budget else { return false };
        while let Some(grant) = budget.poll_grant(self.now) {
            if grant.worker == worker {
                // A refused loan request is reported again in the next round.
                has_own |= !matches!(grant.kind, GrantKind::QueuedRequestRefused(_));
                borrower.handle_grant(now, grant);
            } else if let Some(member) = self.members.get_mut(&grant.worker) {
                member.post(self.now, grant, to_wake);
            } else {
                budget.handle_report(self.now, grant.worker, &returned(grant));
            }
        }
        has_own
    }

    fn is_busy(&self) -> bool {
        self.observation.has_new_requests
            || self.budget.as_ref().is_some_and(|budget| budget.in_flight() > 0)
    }

    /// Samples the delivered operations if a sample is due. Returns the resulting events.
    fn observe(&mut self) -> Vec<StoreEvent> {
        let latest = self.now;
        if latest < self.observation.sampled_at + SAMPLE_INTERVAL || !self.is_busy() {
            return Vec::new();
        }
        self.observation = SamplingState { sampled_at: latest, has_new_requests: false };
        self.budget.as_mut().map_or_else(Vec::new, |budget| budget.observe(latest))
    }

    /// Returns the time of the next grant or sample that is due without another event;
    /// [`Time::NEVER`] if there is none.
    fn due(&self) -> Time {
        let grants = self.budget.as_ref().and_then(|budget| budget.next_deadline());
        let observation = self.is_busy().then_some(self.observation.sampled_at + SAMPLE_INTERVAL);
        grants.into_iter().chain(observation).min().unwrap_or(Time::NEVER)
    }

    /// Makes the worker the one that wakes up for the budget's deadline.
    fn keep(&mut self, worker: WorkerId) {
        let former = self.keeper.replace(worker);
        if former == Some(worker) {
            return;
        }
        if let Some(former) = former.and_then(|former| self.members.get(&former)) {
            former.flags.is_deadline_keeper.set(false);
        }
        if let Some(member) = self.members.get(&worker) {
            member.flags.is_deadline_keeper.set(true);
        }
    }

    /// Takes the budget, with the state of its observation, if the worker is its only user and all
    /// grants are returned ([`StoreBudget::is_drained`]). `in_flight`: dispatched requests of the
    /// worker that have not completed.
    pub(crate) fn take_budget_if_settled(
        &mut self,
        worker: WorkerId,
        borrower: &Borrower,
        in_flight: u32,
    ) -> Option<(Box<Recorded<StoreBudget>>, SamplingState)> {
        let is_alone = self.members.len() == 1
            && self.members.get(&worker).is_some_and(|member| member.grants.is_empty())
            && self.changes.is_empty();
        let budget =
            self.budget.take_if(|budget| is_alone && budget.is_drained(borrower, in_flight));
        budget.map(|budget| (budget, self.observation))
    }

    /// Returns the budget, for reading its state; `None` if it has ended.
    pub(crate) fn budget(&self) -> Option<&Recorded<StoreBudget>> {
        self.budget.as_deref()
    }

    /// Appends the state of the disks in these slots to `flows`, as of `now`, or of the last
    /// exchange if that is later. Returns false if the budget has ended.
    pub(crate) fn add_flows(
        &self,
        now: Time,
        slots: &[DiskSlot],
        flows: &mut Vec<DiskQosStatus>,
    ) -> bool {
        let Some(budget) = &self.budget else { return false };
        let latest = self.now.max(now);
        flows.extend(slots.iter().filter_map(|slot| budget.view(latest, *slot)));
        true
    }

    /// Returns the number of grants that a worker has not fetched. A grant for several queued
    /// requests counts once per request.
    #[cfg(test)]
    pub(crate) fn unfetched_grants(&self, worker: WorkerId) -> u32 {
        let grants = self.members.get(&worker).into_iter().flat_map(|member| &member.grants);
        let count = |(_, grant): &(Time, WorkerGrant)| match grant.kind {
            GrantKind::QueuedRequests(requests) => requests,
            _ => 1,
        };
        grants.map(count).sum()
    }

    /// Flushes the recording of the scheduler.
    pub(crate) fn flush_recording(&mut self) {
        if let Some(budget) = &mut self.budget {
            budget.flush();
        }
    }
}

/// Returns the report by which a grant to a worker that has left the store is returned.
fn returned(grant: WorkerGrant) -> WorkerReport {
    let requests = match grant.kind {
        GrantKind::QueuedRequests(requests) => requests,
        GrantKind::Loan(_) => 1,
        GrantKind::LoanRefused | GrantKind::QueuedRequestRefused(_) => 0,
    };
    let grant_return = ReturnedGrant { disk: grant.disk, requests, cost: 0, bytes: 0 };
    WorkerReport { returned_grants: vec![grant_return], ..WorkerReport::default() }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
