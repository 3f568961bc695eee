//! What happened in each second.

use std::collections::BTreeMap;

use super::settings::{Limits, Settings};

/// A part under way.
pub(super) struct Record<'a> {
    pub(super) settings: &'a Settings,
    pub(super) calibration: Calibration,
    pub(super) steps: Vec<StepBegun>,
    pub(super) seconds: Vec<Second>,
}

/// What the store does while nothing is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Calibration {
    /// Of all disks together, in requests of 8 KiB per second.
    pub(super) measured_iops: f64,
    /// What of that is given to the store as its capability.
    pub(super) capability_iops: u64,
    /// That for the document's: what limits are multiplied by.
    pub(super) scale: f64,
}

/// A step's beginning.
#[derive(Clone, Debug)]
pub(super) struct StepBegun {
    /// Of each group, as they were asked for here.
    pub(super) limits: Vec<Limits>,
    /// When they were in effect, in seconds since the load began.
    pub(super) at_s: f64,
    /// Whether, and with which words, the daemon refused them.
    pub(super) refused: Option<String>,
}

/// About one second. Rates are in requests of 8 KiB per second.
#[derive(Clone, Debug)]
pub(super) struct Second {
    /// When it ended, in seconds since the load began.
    pub(super) at_s: f64,
    /// The same in milliseconds since 1970, to find it in other records.
    pub(super) unix_ms: u64,
    /// How long it was.
    pub(super) span_s: f64,
    /// The step; none during calibration.
    pub(super) step: Option<usize>,
    /// Whether it is the time in which the step's limits were being set.
    pub(super) is_change: bool,
    pub(super) disks: Vec<DiskSecond>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct DiskSecond {
    /// What it got in this second, by the daemon's counters.
    pub(super) got_iops: f64,
    /// What fio got in the second that ended next to this one.
    pub(super) fio_iops: Option<f64>,
    /// As `suimon qos flows` shows it.
    pub(super) last_5_s: Flow,
}

/// Means of the last five seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    pub(super) entitled_iops: u64,
    pub(super) demanded_iops: u64,
    /// How long requests waited, summed over them, by cause.
    pub(super) waits_ns: BTreeMap<String, u64>,
}

impl Calibration {
    /// Of a store that did so much, of which so much is declared, for a document's.
    pub(super) fn new(measured_iops: f64, declared_percent: u64, document_iops: u64) -> Self {
        let measured_iops = measured_iops.max(1.0);
        let declared = (measured_iops * declared_percent as f64 / 100.0).max(1.0);
        Self {
            measured_iops,
            capability_iops: declared as u64,
            scale: declared / document_iops as f64,
        }
    }
}

impl Record<'_> {
    /// The whole seconds of a step.
    pub(super) fn of_step(&self, step: usize) -> impl Iterator<Item = &Second> {
        self.seconds.iter().filter(move |second| second.step == Some(step) && !second.is_change)
    }

    /// Adds what fio says that disk `at` got: when a second ended, and bytes per second.
    pub(super) fn add_fio(&mut self, at: usize, log: &[(u64, u64)]) {
        for second in &mut self.seconds {
            let nearest = log.iter().min_by_key(|(ended, _)| ended.abs_diff(second.unix_ms));
            let near = nearest.filter(|(ended, _)| ended.abs_diff(second.unix_ms) <= 600);
            if let (Some((_, rate)), Some(disk)) = (near, second.disks.get_mut(at)) {
                disk.fio_iops = Some(*rate as f64 / 8192.0);
            }
        }
    }
}
