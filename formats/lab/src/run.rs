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
pub const FORMAT: u32 = 1;

/// Everything of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// [`FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Name of its folder.
    pub id: String,
    /// The plan's file, word for word.
    pub plan: String,
    /// Real or simulated.
    pub origin: Origin,
    /// `auto`, `quick` or `full`.
    pub scale: String,
    /// RFC 3339, UTC.
    pub began: String,
    /// Of all parts together, without pauses between interruptions.
    pub took_s: f64,
    /// Whether parts have a profile.
    #[serde(default)]
    pub profiles: bool,
    /// The command that repeats it.
    pub command: String,
    /// On what it was made.
    pub machine: Machine,
    /// What was set up, in sentences.
    pub setup: Vec<Words>,
    /// What was compared, in the order in which it is shown.
    pub cases: Vec<Case>,
    /// What the values are of.
    pub measures: Vec<Measure>,
    /// All repetitions of all cases, in the order in which they were made.
    pub parts: Vec<Part>,
    /// What of the plan could not be done here, and why.
    pub missing: Vec<Words>,
    /// Whether it ended before all was measured, and by what.
    pub cut_short: Option<String>,
    /// Figures of the simulator; the plan's are computed from parts.
    #[serde(default)]
    pub simulated: Vec<SimulatedFigure>,
}

/// Where a run took place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Origin {
    /// On this host.
    Real,
    /// In the simulator.
    Simulated {
        /// The scenario's name.
        scenario: String,
        /// The seed of the run.
        seed: u64,
        /// From which commit the simulator was built.
        commit: String,
    },
}

/// What is compared: one way to set things up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Letters, digits, `-`, `.` and `+`; unique in the run.
    pub id: String,
    /// What it is, for people.
    pub words: Words,
    /// About how long one repetition takes.
    pub seconds: f64,
}

/// A quantity of which each part has one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// As ids of cases; unique in the run.
    pub id: String,
    /// What it is of, for people.
    pub words: Words,
    /// As it is printed after the number: `MB/s`, `%`, `µs`, or nothing.
    pub unit: String,
    /// Which of two values is better.
    pub better: Better,
    /// Whether repetitions go on until its confidence interval is narrow.
    pub decides: bool,
}

/// Which of two values a user would rather have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// The higher one.
    Higher,
    /// The lower one.
    Lower,
    /// Neither.
    Neither,
}

/// One repetition of one case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The case's id.
    pub case: String,
    /// From 0.
    pub repetition: u32,
    /// Milliseconds since 1970.
    pub began_ms: u64,
    /// How long it took, setting up included.
    pub took_s: f64,
    /// Runnable threads before it began, the mean of the last minute.
    pub load_before: f64,
    /// By measure. A measure that this case does not have is absent.
    pub values: BTreeMap<String, f64>,
    /// What was sampled over time.
    pub series: Vec<Series>,
    /// When something was changed, in order.
    pub marks: Vec<Mark>,
    /// Where CPU time went, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// What is to be known of it, in sentences.
    pub notes: Vec<Words>,
    /// Why there are no values, if there are none.
    pub failure: Option<String>,
}

/// Where the CPU time of the whole machine went while a part was measured, by samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// How long it was measured.
    pub seconds: f64,
    /// What ran, most time first.
    pub modules: Vec<Module>,
}

/// A program, a library, a module of the kernel, or a part of the kernel itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Module {
    /// `suimond`, `libc.so.6`, `kernel: TCP`.
    pub name: String,
    /// Of all CPUs together.
    pub cpu_seconds: f64,
}

/// Numbers over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What charts find it by: `cpu`, `queues`, `disk`, `stage` …
    pub group: String,
    /// Of what it is: a processor, a disk.
    pub name: String,
    /// As a measure's.
    pub unit: String,
    /// Seconds since the part began, and the number.
    pub points: Vec<(f64, f64)>,
}

/// When something was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Seconds since the part began.
    pub at_s: f64,
    /// What.
    pub words: Words,
}

/// A published figure and what the simulator has for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedFigure {
    /// The scenario's step.
    pub step: String,
    /// Of what.
    pub of: String,
    /// In the document's words.
    pub published: String,
    /// What came out of the model.
    pub ours: String,
    /// Whether they agree, within what the scenario allows.
    pub agrees: bool,
    /// What the figure is used for: `calibration`, `held-out` or `bar`.
    #[serde(rename = "use")]
    pub used: String,
}

impl Case {
    /// A case; `seconds` is about what one repetition takes.
    pub fn new(id: impl Into<String>, words: Words, seconds: f64) -> Self {
        Self { id: id.into(), words, seconds }
    }
}

impl Measure {
    /// A measure that does not decide how often cases are repeated.
    pub fn new(id: &str, words: Words, unit: &str, better: Better) -> Self {
        Self { id: id.to_owned(), words, unit: unit.to_owned(), better, decides: false }
    }

    /// The same, and repetitions go on until its confidence interval is narrow.
    pub fn deciding(mut self) -> Self {
        self.decides = true;
        self
    }
}

impl Part {
    /// Adds a value.
    pub fn value(&mut self, measure: &str, value: f64) {
        self.values.insert(measure.to_owned(), value);
    }
}

impl Run {
    /// The values of one measure of one case, of all repetitions in order.
    pub fn values(&self, case: &str, measure: &str) -> Vec<f64> {
        let parts = self.parts.iter().filter(|part| part.case == case);
        parts.filter_map(|part| part.values.get(measure).copied()).collect()
    }

    /// The last part of a case that has series: what charts over time show.
    pub fn last_with_series(&self, case: &str) -> Option<&Part> {
        let parts = self.parts.iter().rev();
        parts.into_iter().find(|part| part.case == case && !part.series.is_empty())
    }

    /// The measure of that id.
    pub fn measure(&self, id: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| measure.id == id)
    }

    /// The case of that id.
    pub fn case(&self, id: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == id)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run of nothing.
    pub(crate) fn run(id: &str) -> Run {
        Run {
            format: FORMAT,
            id: id.to_owned(),
            plan: String::new(),
            origin: Origin::Real,
            scale: "quick".to_owned(),
            began: "2026-01-01T00:00:00Z".to_owned(),
            took_s: 0.0,
            profiles: false,
            command: String::new(),
            machine: Machine::default(),
            setup: Vec::new(),
            cases: Vec::new(),
            measures: Vec::new(),
            parts: Vec::new(),
            missing: Vec::new(),
            cut_short: None,
            simulated: Vec::new(),
        }
    }

    #[test]
    fn a_run_is_read_as_it_was_written() {
        let mut run = run("x");
        run.origin =
            Origin::Simulated { scenario: "web".to_owned(), seed: 7, commit: String::new() };
        run.cases.push(Case::new("a", Words::new("one", "一"), 1.5));
        run.measures.push(Measure::new("m", Words::same("m"), "µs", Better::Lower).deciding());
        let mut part = Part { case: "a".to_owned(), ..Part::default() };
        part.value("m", 0.1);
        part.marks.push(Mark { at_s: 2.0, words: Words::same("x") });
        run.parts.push(part);
        let text = serde_json::to_string(&run).unwrap();
        let read: Run = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (read.parts, read.cases, read.measures),
            (run.parts.clone(), run.cases, run.measures)
        );
        assert_eq!(read.origin, run.origin);
        assert!(text.contains("\"kind\":\"simulated\""), "{text}");
    }
}
