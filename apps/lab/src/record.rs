//! What is known of a run: the format of `run.json`, of real and of simulated runs alike.
//!
//! A run is a set of *parts*: a part is one repetition of one case. A part has *values*, one
//! number for each measure, and may have *series*, numbers over time, and *marks*, when
//! something was changed. All that a report says is computed from parts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::words::Words;

/// The version of the format. A program reads records of its own version only.
pub(crate) const FORMAT: u32 = 1;

/// Everything of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) format: u32,
    /// Name of its folder.
    pub(crate) id: String,
    /// The plan's file, word for word.
    pub(crate) plan: String,
    pub(crate) origin: Origin,
    /// `auto`, `quick` or `full`.
    pub(crate) scale: String,
    /// RFC 3339, UTC.
    pub(crate) began: String,
    /// Of all parts together, without pauses between interruptions.
    pub(crate) took_s: f64,
    /// The command that repeats it.
    pub(crate) command: String,
    pub(crate) machine: Machine,
    /// What was set up, in sentences.
    pub(crate) setup: Vec<Words>,
    pub(crate) cases: Vec<Case>,
    pub(crate) measures: Vec<Measure>,
    pub(crate) parts: Vec<Part>,
    /// What of the plan could not be done here, and why.
    pub(crate) missing: Vec<Words>,
    /// Whether it ended before all was measured, and by what.
    pub(crate) cut_short: Option<String>,
    /// Figures of the simulator; the plan's are computed from parts.
    #[serde(default)]
    pub(crate) simulated: Vec<SimulatedFigure>,
}

/// Where a run took place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Origin {
    /// On this host.
    Real,
    /// In the simulator.
    Simulated { scenario: String, seed: u64, commit: String },
}

/// What is compared: one way to set things up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Case {
    /// Letters, digits, `-`, `.` and `+`; unique in the run.
    pub(crate) id: String,
    pub(crate) words: Words,
    /// About how long one repetition takes.
    pub(crate) seconds: f64,
}

/// A quantity of which each part has one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Measure {
    /// As ids of cases; unique in the run.
    pub(crate) id: String,
    pub(crate) words: Words,
    /// As it is printed after the number: `MB/s`, `%`, `µs`, or nothing.
    pub(crate) unit: String,
    pub(crate) better: Better,
    /// Whether repetitions go on until its confidence interval is narrow.
    pub(crate) decides: bool,
}

/// Which of two values a user would rather have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Better {
    Higher,
    Lower,
    /// Neither.
    Neither,
}

/// One repetition of one case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) case: String,
    /// From 0.
    pub(crate) repetition: u32,
    /// Milliseconds since 1970.
    pub(crate) began_ms: u64,
    pub(crate) took_s: f64,
    /// Runnable threads before it began, the mean of the last minute.
    pub(crate) load_before: f64,
    /// By measure. A measure that this case does not have is absent.
    pub(crate) values: BTreeMap<String, f64>,
    pub(crate) series: Vec<Series>,
    pub(crate) marks: Vec<Mark>,
    /// What is to be known of it, in sentences.
    pub(crate) notes: Vec<Words>,
    /// Why there are no values, if there are none.
    pub(crate) failure: Option<String>,
}

/// Numbers over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Series {
    /// What charts find it by: `cpu`, `queues`, `disk`, `stage` …
    pub(crate) group: String,
    /// Of what it is: a processor, a disk.
    pub(crate) name: String,
    pub(crate) unit: String,
    /// Seconds since the part began, and the number.
    pub(crate) points: Vec<(f64, f64)>,
}

/// When something was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// Seconds since the part began.
    pub(crate) at_s: f64,
    pub(crate) words: Words,
}

/// A published figure and what the simulator has for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SimulatedFigure {
    pub(crate) step: String,
    pub(crate) of: String,
    pub(crate) published: String,
    pub(crate) ours: String,
    pub(crate) agrees: bool,
    /// What the figure is used for: `calibration`, `held-out` or `bar`.
    #[serde(rename = "use")]
    pub(crate) used: String,
}

impl Case {
    pub(crate) fn new(id: impl Into<String>, words: Words, seconds: f64) -> Self {
        Self { id: id.into(), words, seconds }
    }
}

impl Measure {
    pub(crate) fn new(id: &str, words: Words, unit: &str, better: Better) -> Self {
        Self { id: id.to_owned(), words, unit: unit.to_owned(), better, decides: false }
    }

    /// The same, and repetitions go on until its confidence interval is narrow.
    pub(crate) fn deciding(mut self) -> Self {
        self.decides = true;
        self
    }
}

impl Part {
    /// Adds a value.
    pub(crate) fn value(&mut self, measure: &str, value: f64) {
        self.values.insert(measure.to_owned(), value);
    }
}

impl Run {
    /// The values of one measure of one case, of all repetitions in order.
    pub(crate) fn values(&self, case: &str, measure: &str) -> Vec<f64> {
        let parts = self.parts.iter().filter(|part| part.case == case);
        parts.filter_map(|part| part.values.get(measure).copied()).collect()
    }

    /// The last part of a case that has series: what charts over time show.
    pub(crate) fn last_with_series(&self, case: &str) -> Option<&Part> {
        let parts = self.parts.iter().rev();
        parts.into_iter().find(|part| part.case == case && !part.series.is_empty())
    }

    pub(crate) fn measure(&self, id: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| measure.id == id)
    }

    pub(crate) fn case(&self, id: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == id)
    }
}
