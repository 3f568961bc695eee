//! Calibration of an unpublished parameter.

use std::fmt;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::storage::capacity::measure_capacity;
use crate::storage::spec::StorageScenario;

/// Result of the calibration of a parameter.
#[derive(Clone, Debug, Serialize)]
pub struct CalibrationResult {
    pub(crate) parameter: String,
    /// Value whose result is closest to the target.
    #[serde(rename = "value")]
    pub(crate) best_value: u32,
    /// Value of the parameter in the scenario.
    #[serde(rename = "is")]
    pub(crate) scenario_value: u32,
    /// Rate of the array with this value, in normalised operations per second.
    pub(crate) iops: u64,
    /// Target rate of the calibration, in normalised operations per second.
    pub(crate) target_iops: u64,
    /// Rate of the array with the lowest value that the manual permits.
    pub(crate) iops_low: u64,
    /// Rate of the array with the highest value that the manual permits.
    pub(crate) iops_high: u64,
}

impl fmt::Display for CalibrationResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            parameter,
            best_value: value,
            scenario_value: current,
            iops,
            target_iops,
            iops_low,
            iops_high,
        } = self;
        write!(
            f,
            "{parameter}: {value} (scenario: {current}): {iops} operations of 8 KB per second, \
             target {target_iops}; {iops_low} to {iops_high} within the range of the manual"
        )
    }
}

/// Searches for the value with which the array reaches the target rate.
///
/// # Errors
/// The scenario selects no parameter for calibration, or no value that the manual permits reaches
/// the target.
pub fn calibrate(scenario: &StorageScenario, seed: u64) -> Result<CalibrationResult> {
    let Some(spec) = &scenario.calibration else {
        bail!("the scenario selects no parameter for calibration; add a table `[calibrate]`")
    };
    let measure = |value: u32| {
        let mut scenario = scenario.clone();
        scenario.array.drive.media_mb_s = value;
        measure_capacity(&scenario, seed)
    };
    let (mut low, mut high) = (spec.low, spec.high);
    let (iops_low, iops_high) = (measure(low), measure(high));
    if spec.target_iops < iops_low || spec.target_iops > iops_high {
        let (key, target) = (&spec.parameter, spec.target_iops);
        bail!(
            "{key}: with values from {low} to {high}, the array delivers {iops_low} to {iops_high} \
             IOPS, but calibrate.target_iops is {target}; extend calibrate.low or calibrate.high, \
             or correct the target"
        );
    }
    // A binary search is possible, since the rate of the array rises with the rate of the media.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if measure(middle) < spec.target_iops { low = middle } else { high = middle }
    }
    let miss = |value: u32| measure(value).abs_diff(spec.target_iops);
    let value = if miss(low) <= miss(high) { low } else { high };
    Ok(CalibrationResult {
        parameter: spec.parameter.clone(),
        best_value: value,
        scenario_value: scenario.array.drive.media_mb_s,
        iops: measure(value),
        target_iops: spec.target_iops,
        iops_low,
        iops_high,
    })
}
