//! Finds the value of a parameter that nobody published.

use std::fmt;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::storage::measure::capability;
use crate::storage::spec::StorageScenario;

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Calibrated {
    pub(crate) parameter: String,
    /// The value that comes nearest.
    pub(crate) value: u32,
    /// What the scenario has.
    pub(crate) is: u32,
    /// What comes out with the value, and what was to come out, in normalised operations per
    /// second.
    pub(crate) iops: u64,
    pub(crate) target_iops: u64,
    /// What comes out with the least and the most that the manual allows.
    pub(crate) iops_low: u64,
    pub(crate) iops_high: u64,
}

impl fmt::Display for Calibrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parameter, value, is, iops, target_iops, iops_low, iops_high } = self;
        write!(
            f,
            "{parameter}: {value} (the scenario has {is}): {iops} operations of 8 KB a second where \
             {target_iops} are wanted; {iops_low} to {iops_high} with what the manual allows"
        )
    }
}

/// Looks for the value with which the array does what it is to do.
///
/// # Errors
/// The scenario does not say what is to be calibrated, or no value that the manual allows
/// brings it about.
pub(crate) fn calibrate(scenario: &StorageScenario, seed: u64) -> Result<Calibrated> {
    let Some(spec) = &scenario.calibrate else {
        bail!("calibrate: the scenario does not say what is to be calibrated")
    };
    let with = |value: u32| {
        let mut scenario = scenario.clone();
        scenario.array.drive.media_mb_s = value;
        capability(&scenario, seed)
    };
    let (mut low, mut high) = (spec.low, spec.high);
    let (iops_low, iops_high) = (with(low), with(high));
    if spec.target_iops < iops_low || spec.target_iops > iops_high {
        let (key, target) = (&spec.parameter, spec.target_iops);
        bail!("{key}: from {low} to {high} the array does {iops_low} to {iops_high}, not {target}");
    }
    // Faster media never make a slower array.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if with(middle) < spec.target_iops { low = middle } else { high = middle }
    }
    let miss = |value: u32| with(value).abs_diff(spec.target_iops);
    let value = if miss(low) <= miss(high) { low } else { high };
    Ok(Calibrated {
        parameter: spec.parameter.clone(),
        value,
        is: scenario.array.drive.media_mb_s,
        iops: with(value),
        target_iops: spec.target_iops,
        iops_low,
        iops_high,
    })
}
