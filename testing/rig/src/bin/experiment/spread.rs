//! Figures of several rounds.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) lowest: f64,
    pub(crate) median: f64,
    pub(crate) highest: f64,
}

impl Spread {
    /// None of nothing. Of an even number the median is the lower of the two in the middle.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        Some(Self {
            lowest: *values.first()?,
            median: *values.get((values.len() - 1) / 2)?,
            highest: *values.last()?,
        })
    }
}
