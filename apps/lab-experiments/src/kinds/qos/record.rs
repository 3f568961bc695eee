//! Values of each second of a repetition.

use std::collections::BTreeMap;

use super::settings::{Limits, Settings};

/// Values recorded during one repetition.
pub(super) struct Record<'a> {
    pub(super) settings: &'a Settings,
    pub(super) calibration: Calibration,
    pub(super) steps: Vec<StepStart>,
    pub(super) seconds: Vec<SecondSample>,
}

/// Capacity of the store without limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Calibration {
    /// Rate of all disks together, in requests of 8 KiB per second.
    pub(super) measured_iops: f64,
    /// Share of the measured rate that is configured as the store's capacity.
    pub(super) capacity_iops: u64,
    /// Ratio of this store's capacity to the document's, by which limits are multiplied.
    pub(super) scale: f64,
}

/// Start of a step: the limits that were set, and the time.
#[derive(Clone, Debug)]
pub(super) struct StepStart {
    /// Limits of each group as requested on this host.
    pub(super) limits: Vec<Limits>,
    /// Time at which they were in effect, in seconds since the start of the load.
    pub(super) at_s: f64,
    /// Error of the daemon if it rejected the limits.
    pub(super) rejection: Option<String>,
}

/// Values of about one second. Rates are in requests of 8 KiB per second.
#[derive(Clone, Debug)]
pub(super) struct SecondSample {
    /// End of the second, in seconds since the start of the load.
    pub(super) at_s: f64,
    /// End of the second in milliseconds since 1970-01-01 UTC, for correlation with other records.
    pub(super) unix_ms: u64,
    /// Length of the interval in seconds.
    pub(super) span_s: f64,
    /// Number of the step; `None` during calibration.
    pub(super) step: Option<usize>,
    /// True if the step's limits were being set in this time.
    pub(super) is_changing_limits: bool,
    pub(super) disks: Vec<DiskSample>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct DiskSample {
    /// Rate in this second according to the daemon's counters.
    pub(super) delivered_iops: f64,
    /// Rate according to fio in its interval that ended closest to this second's end; `None`
    /// without an interval.
    pub(super) fio_iops: Option<f64>,
    /// Values shown by `suimon qos flows`.
    pub(super) last_5_s: Flow,
}

/// Means of a disk over the last 5 s, from `suimon qos flows`.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    pub(super) guaranteed_iops: u64,
    pub(super) demand_iops: u64,
    /// Time that requests were queued, summed over requests, by cause.
    pub(super) queued_ns: BTreeMap<String, u64>,
}

impl Calibration {
    /// Returns the calibration for a measured rate. `declared_percent` of it are the capacity;
    /// `document_iops` is the rate of the document's store.
    pub(super) fn new(measured_iops: f64, declared_percent: u64, document_iops: u64) -> Self {
        let measured_iops = measured_iops.max(1.0);
        let declared = (measured_iops * declared_percent as f64 / 100.0).max(1.0);
        Self {
            measured_iops,
            capacity_iops: declared as u64,
            scale: declared / document_iops as f64,
        }
    }
}

impl Record<'_> {
    /// Returns the complete seconds of a step.
    pub(super) fn step_seconds(&self, step: usize) -> impl Iterator<Item = &SecondSample> {
        self.seconds
            .iter()
            .filter(move |second| second.step == Some(step) && !second.is_changing_limits)
    }

    /// Adds fio's log of disk `index`: end of each interval, and bytes per second.
    pub(super) fn add_fio(&mut self, index: usize, log: &[(u64, u64)]) {
        for second in &mut self.seconds {
            let nearest = log.iter().min_by_key(|(ended_ms, _)| ended_ms.abs_diff(second.unix_ms));
            let near = nearest.filter(|(ended_ms, _)| ended_ms.abs_diff(second.unix_ms) <= 600);
            if let (Some((_, rate)), Some(disk)) = (near, second.disks.get_mut(index)) {
                disk.fio_iops = Some(*rate as f64 / 8192.0);
            }
        }
    }
}
