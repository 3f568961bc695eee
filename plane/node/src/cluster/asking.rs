//! Asking a store's leader for a minimum before a disk has it.
//!
//! A change that raises minimums is made when what they come to is reserved for this host: the driver
//! reports them as if the disks had them, and the leader's grant is the answer. What nobody answers in time is
//! made all the same and is not promised: until it is reserved, disks have the minimums of before
//! ([`covered`](super::covered)).

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use suimon_cluster_qos::{Grant, Promises, Report, ReportId};
use suimon_contract::{ApiError, ErrorCode, HostConfig, Name};
use suimon_quantity::Time;

use super::covered::minimums;
use super::shared_stores;
use super::status::Reach;
use crate::shared::Shared;

/// So long a change waits for leaders.
const PATIENCE: Duration = Duration::from_secs(5);

/// So long what was reserved waits for the change to be made.
const MADE_WITHIN: Duration = Duration::from_secs(30);

/// What a leader says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is reserved.
    Reserved,
    /// It does not fit.
    Refused(Promises),
}

/// Where the verdict comes.
#[derive(Default)]
pub(super) struct Slot {
    verdict: Mutex<Option<Verdict>>,
    come: Condvar,
}

impl Slot {
    fn tell(&self, verdict: Verdict) {
        *self.verdict.lock().unwrap_or_else(PoisonError::into_inner) = Some(verdict);
        self.come.notify_all();
    }

    fn wait(&self, patience: Duration) -> Option<Verdict> {
        let held = self.verdict.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.come.wait_timeout_while(held, patience, |verdict| verdict.is_none());
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Minimums that disks of a store are to have.
#[derive(Clone)]
pub(super) struct Ask {
    /// What they come to.
    pub(super) iops: u64,
    /// The change is not made after that.
    until: Time,
    slot: Arc<Slot>,
    /// The report that asked for it.
    asked: Option<ReportId>,
    is_answered: bool,
}

impl Ask {
    fn new(now: Time, iops: u64) -> Self {
        let until = now + MADE_WITHIN;
        Self { iops, until, slot: Arc::default(), asked: None, is_answered: false }
    }

    /// Whether the leader is to be asked for it still, where disks have so much by now.
    pub(super) fn is_open(&self, now: Time, minimums_iops: u64) -> bool {
        self.iops > minimums_iops && now < self.until
    }

    pub(super) fn handle_report(&mut self, report: &Report) {
        if self.asked.is_none() && report.load.minimums_iops >= self.iops {
            self.asked = Some(report.id);
        }
    }

    /// A grant is in force. Whether it is the end of it.
    pub(super) fn handle_grant(&mut self, grant: &Grant) -> bool {
        if self.is_answered || self.asked.is_none_or(|asked| grant.answers < asked) {
            return false;
        }
        if let Some(promises) = grant.refused {
            self.slot.tell(Verdict::Refused(promises));
            return true;
        }
        if grant.store.reserved_iops >= self.iops {
            // Disks have it soon, and what is reserved stays until then.
            self.is_answered = true;
            self.slot.tell(Verdict::Reserved);
        }
        false
    }
}

impl Shared {
    /// Has leaders reserve what a change promises more on shared stores. What is not promised although
    /// the change is made.
    ///
    /// # Errors
    /// A leader refuses it. Nothing was changed.
    pub(crate) fn ask_leaders(
        &self,
        from: &HostConfig,
        to: &HostConfig,
    ) -> Result<Vec<String>, ApiError> {
        let mut pending = Vec::new();
        let before = shared_stores(from);
        for (name, _) in shared_stores(to) {
            let sum = |config: &HostConfig| minimums(config, name).values().sum::<u64>();
            let iops = sum(to);
            if !before.contains_key(name) || iops <= sum(from) {
                continue;
            }
            match self.ask_leader(name, iops) {
                Ok(Verdict::Reserved) => {}
                Ok(Verdict::Refused(promises)) => {
                    let text = format!(
                        "the leader of the store rejected these minimums: {promises}; lower \
                         minimums, or move disks to another store"
                    );
                    let error = ApiError::new(ErrorCode::Overcommitted, text);
                    return Err(error.about(format!("store/{name}")));
                }
                Err(why) => pending.push(format!(
                    "store {name}: minimums of {iops} IOPS are pending and not guaranteed, \
                     because {why}. The former reservation stays in effect; the new one follows \
                     when the cluster grants it (`suimon cluster status`)."
                )),
            }
        }
        Ok(pending)
    }

    fn ask_leader(&self, store: &Name, iops: u64) -> Result<Verdict, String> {
        match &self.cluster.view().reach {
            Reach::Up => {}
            Reach::None => return Err("the host has not joined the cluster yet".to_owned()),
            Reach::Unreachable(why) | Reach::Refused(why) => return Err(why.clone()),
        }
        let ask = Ask::new(self.plane.now(), iops);
        let slot = Arc::clone(&ask.slot);
        self.cluster.inbox.ask(store.clone(), Some(ask));
        let verdict = slot.wait(PATIENCE);
        verdict.ok_or_else(|| {
            self.cluster.inbox.ask(store.clone(), None);
            let view = self.cluster.view();
            view.why_nobody_answers(store)
        })
    }
}

/// What is asked of each store; `None`: nothing any more.
pub(super) type Asks = BTreeMap<Name, Option<Ask>>;
