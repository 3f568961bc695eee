//! What happened in each second.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::plan::{Limits, Plan};
use super::verdict::Verdict;
use crate::circumstances::Circumstances;

/// A plan's run.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    pub(crate) plan: Plan,
    pub(crate) circumstances: Circumstances,
    pub(crate) calibration: Option<Calibration>,
    pub(crate) steps: Vec<StepBegun>,
    pub(crate) seconds: Vec<Second>,
    pub(crate) verdicts: Vec<Verdict>,
    /// The daemon's last events.
    pub(crate) events: Value,
    /// Why it ended before its last step did.
    pub(crate) failure: Option<String>,
}

/// What the store does while nothing is set.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Calibration {
    /// Of all disks together, in requests of 8 KiB per second; given to the store as its
    /// capability.
    pub(crate) measured_iops: u64,
    /// That for the document's: what limits are multiplied by.
    pub(crate) scale: f64,
}

/// A step's beginning.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StepBegun {
    /// Of each group, in effect here.
    pub(crate) limits: Vec<Limits>,
    /// When they were in effect, in seconds since the load began.
    pub(crate) at_s: f64,
    /// What the change took, from the command to its end.
    pub(crate) change_s: f64,
}

/// About one second. Rates are in requests of 8 KiB per second.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Second {
    /// When it ended, in seconds since the load began.
    pub(crate) at_s: f64,
    /// The same in milliseconds since 1970, to find it in other records.
    pub(crate) unix_ms: u64,
    /// How long it was.
    pub(crate) span_s: f64,
    /// The step; none during calibration.
    pub(crate) step: Option<usize>,
    /// Whether it is the time in which the step's limits were being set.
    pub(crate) is_change: bool,
    pub(crate) disks: Vec<DiskSecond>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct DiskSecond {
    pub(crate) disk: String,
    /// What it got in this second, by the daemon's counters.
    pub(crate) got_iops: f64,
    /// What fio got in the second that ended next to this one.
    pub(crate) fio_iops: Option<f64>,
    /// As `suimon qos flows` shows it.
    pub(crate) last_5_s: Flow,
}

/// Means of the last five seconds.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Flow {
    pub(crate) entitled_iops: u64,
    pub(crate) demanded_iops: u64,
    pub(crate) delivered_iops: u64,
    /// How long requests waited, summed over them, by cause.
    pub(crate) waits_ns: BTreeMap<String, u64>,
}

impl Calibration {
    /// Of a store that did so much, for a document's that did so much.
    pub(crate) fn new(measured_iops: f64, document_iops: u64) -> Self {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rates of disks"
        )]
        let (measured, document) = (measured_iops.max(1.0) as u64, document_iops as f64);
        Self { measured_iops: measured, scale: measured_iops.max(1.0) / document }
    }
}

impl Record {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            plan: plan.clone(),
            circumstances: Circumstances::now(),
            calibration: None,
            steps: Vec::new(),
            seconds: Vec::new(),
            verdicts: Vec::new(),
            events: Value::Null,
            failure: None,
        }
    }

    /// The whole seconds of a step.
    pub(crate) fn of_step(&self, step: usize) -> impl Iterator<Item = &Second> {
        self.seconds.iter().filter(move |second| second.step == Some(step) && !second.is_change)
    }

    /// Adds what fio says that disk `at` got: when a second ended, and bytes per second.
    pub(crate) fn add_fio(&mut self, at: usize, log: &[(u64, u64)]) {
        for second in &mut self.seconds {
            let nearest = log.iter().min_by_key(|(ended, _)| ended.abs_diff(second.unix_ms));
            let near = nearest.filter(|(ended, _)| ended.abs_diff(second.unix_ms) <= 600);
            if let (Some((_, rate)), Some(disk)) = (near, second.disks.get_mut(at)) {
                #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
                let iops = *rate as f64 / 8192.0;
                disk.fio_iops = Some(iops);
            }
        }
    }
}
