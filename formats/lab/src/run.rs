//! Data of a run: the format of `run.json`, for real and simulated runs.
//!
//! A run contains *parts*; a part is one repetition of one case ([`Repetition`]). A part has
//! *values*, one number per measure, and optionally *series*, numbers over time, and *marks*, times
//! of changes. Reports are computed from the parts only.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::localized_text::LocalizedText;
use crate::machine::MachineInfo;

/// Format version. Programs read only runs of their own version.
pub const FORMAT_VERSION: u32 = 1;

/// Complete data of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Format version ([`FORMAT_VERSION`]) of the program that wrote the run.
    #[serde(rename = "format")]
    pub format_version: u32,
    /// Id of the run, equal to the name of its folder.
    pub id: String,
    /// Contents of the plan file.
    #[serde(rename = "plan")]
    pub plan_text: String,
    /// Origin of the run: real or simulated.
    pub origin: RunOrigin,
    /// Scale of the run: `auto`, `quick` or `full`.
    pub scale: String,
    /// Start time in UTC, formatted as in RFC 3339.
    #[serde(rename = "began")]
    pub started_at: String,
    /// Total duration in seconds, without the times between an interruption and its continuation.
    #[serde(rename = "took_s")]
    pub duration_s: f64,
    /// True if CPU profiles were requested for the repetitions of this run.
    #[serde(default)]
    pub profiles: bool,
    /// Command line that repeats the run.
    pub command: String,
    /// Machine that executed the run.
    pub machine: MachineInfo,
    /// Description of the experiment's setup, one text per sentence.
    pub setup: Vec<LocalizedText>,
    /// Cases that the run compares, in display order.
    pub cases: Vec<Case>,
    /// Measures of which the repetitions have values.
    pub measures: Vec<Measure>,
    /// Every repetition of every case, in order of execution.
    #[serde(rename = "parts")]
    pub repetitions: Vec<Repetition>,
    /// Parts of the plan that could not be performed, one text with reason each.
    #[serde(rename = "missing")]
    pub skipped_work: Vec<LocalizedText>,
    /// Reason for which the run ended early; `None` if it is complete.
    #[serde(rename = "cut_short")]
    pub aborted_reason: Option<String>,
    /// Published figures with the simulator's results; empty for runs on a real host.
    #[serde(default)]
    #[serde(rename = "simulated")]
    pub simulated_figures: Vec<SimulatedFigure>,
}

/// Origin of a run's data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RunOrigin {
    /// Data measured on a real host.
    Real,
    /// Data computed by the simulator.
    Simulated {
        /// Name of the simulated scenario.
        scenario: String,
        /// Seed of the random numbers.
        seed: u64,
        /// Commit from which the simulator was built.
        commit: String,
    },
}

/// Case of an experiment: one configuration whose results are compared with others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Id of the case: letters, digits, `-`, `.` and `+`; unique in the run.
    pub id: String,
    /// Description of the case, displayed in reports.
    #[serde(rename = "words")]
    pub description: LocalizedText,
    /// Approximate duration of one repetition in seconds.
    pub seconds: f64,
}

/// Measured quantity, of which each repetition has at most one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// Id of the measure; same syntax as ids of cases, unique in the run.
    pub id: String,
    /// Description of the measure, displayed in reports.
    #[serde(rename = "words")]
    pub description: LocalizedText,
    /// Unit displayed after the number: `MB/s`, `%`, `µs`, or empty.
    pub unit: String,
    /// Whether higher or lower values are better.
    pub better: MeasureDirection,
    /// True if repetitions of a case continue until the confidence interval of this measure is
    /// narrow.
    #[serde(rename = "decides")]
    pub determines_repetition_count: bool,
}

/// Whether higher or lower values of a measure are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasureDirection {
    /// Higher values are better, as for throughput.
    Higher,
    /// Lower values are better, as for latency.
    Lower,
    /// Neither higher nor lower values are better.
    #[serde(rename = "neither")]
    None,
}

/// One repetition of one case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// Id of the case measured.
    #[serde(rename = "case")]
    pub case_id: String,
    /// Number of the repetition within its case, counted from 0.
    pub repetition: u32,
    /// Start time in milliseconds since 1970-01-01 UTC.
    #[serde(rename = "began_ms")]
    pub started_unix_ms: u64,
    /// Duration in seconds, including the setup.
    #[serde(rename = "took_s")]
    pub duration_s: f64,
    /// Load average over one minute, before the start.
    pub load_before: f64,
    /// Values by id of the measure; measures not applicable to the case are absent.
    pub values: BTreeMap<String, f64>,
    /// Quantities sampled during the repetition.
    pub series: Vec<Series>,
    /// Changes during the repetition, in order of time.
    pub marks: Vec<Mark>,
    /// CPU profile; `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Remarks about the repetition, one text per sentence.
    pub notes: Vec<LocalizedText>,
    /// Reason for which there are no values; `None` on success.
    pub failure: Option<String>,
}

/// CPU time of the whole machine during a repetition, sampled by `perf`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Duration of the measurement in seconds.
    #[serde(rename = "seconds")]
    pub duration_s: f64,
    /// Modules in descending order of CPU time.
    pub modules: Vec<ProfiledModule>,
}

/// CPU time of a program, library, kernel module, or part of the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfiledModule {
    /// Name of the module: `suimond`, `libc.so.6`, `kernel: TCP`.
    pub name: String,
    /// CPU time in seconds, summed over all CPUs.
    pub cpu_seconds: f64,
}

/// Quantity sampled repeatedly during a repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Group that selects the chart: `cpu`, `queues`, `disk`, `stage` …
    pub group: String,
    /// Name of the object measured, such as a worker or a disk.
    pub name: String,
    /// Unit, as in [`Measure::unit`].
    pub unit: String,
    /// Samples: pairs of seconds since the start of the repetition and value.
    pub points: Vec<(f64, f64)>,
}

/// Change during a repetition, which charts mark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Seconds since the start of the repetition.
    pub at_s: f64,
    /// Description of the change for charts.
    #[serde(rename = "words")]
    pub description: LocalizedText,
}

/// Published figure, with the simulator's result for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedFigure {
    /// Step of the simulated scenario, such as a phase of the published experiment.
    pub step: String,
    /// Quantity that the figure describes.
    #[serde(rename = "of")]
    pub quantity: String,
    /// Published value, as written in the document.
    pub published: String,
    /// Value computed by the simulator.
    #[serde(rename = "ours")]
    pub simulated: String,
    /// True if both agree within the scenario's tolerance.
    #[serde(rename = "agrees")]
    pub is_within_tolerance: bool,
    /// Use of the figure: `calibration` (parameters were fitted to it), `held-out` (compared only)
    /// or `bar` (target to be reached).
    #[serde(rename = "use")]
    pub purpose: String,
}

impl Case {
    /// Creates a case; `seconds` is the approximate duration of one repetition.
    pub fn new(id: impl Into<String>, words: LocalizedText, seconds: f64) -> Self {
        Self { id: id.into(), description: words, seconds }
    }
}

impl Measure {
    /// Creates a measure that does not determine the number of repetitions.
    pub fn new(id: &str, words: LocalizedText, unit: &str, better: MeasureDirection) -> Self {
        Self {
            id: id.to_owned(),
            description: words,
            unit: unit.to_owned(),
            better,
            determines_repetition_count: false,
        }
    }

    /// Returns the measure with [`Measure::determines_repetition_count`] set.
    pub fn with_repetition_count_determined(mut self) -> Self {
        self.determines_repetition_count = true;
        self
    }
}

impl Repetition {
    /// Sets the value of the measure with id `measure`.
    pub fn set_value(&mut self, measure: &str, value: f64) {
        self.values.insert(measure.to_owned(), value);
    }
}

impl Run {
    /// Returns the values of one measure of one case, in order of repetitions; arguments are ids.
    pub fn values(&self, case: &str, measure: &str) -> Vec<f64> {
        let parts = self.repetitions.iter().filter(|part| part.case_id == case);
        parts.filter_map(|part| part.values.get(measure).copied()).collect()
    }

    /// Returns the last repetition of a case that has series, which is the one that charts over
    /// time show; `None` if none has.
    pub fn last_repetition_with_series(&self, case: &str) -> Option<&Repetition> {
        let parts = self.repetitions.iter().rev();
        parts.into_iter().find(|part| part.case_id == case && !part.series.is_empty())
    }

    /// Returns the measure with this id, or `None`.
    pub fn measure(&self, id: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| measure.id == id)
    }

    /// Returns the case with this id, or `None`.
    pub fn case(&self, id: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == id)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a run without cases and repetitions.
    pub(crate) fn run(id: &str) -> Run {
        Run {
            format_version: FORMAT_VERSION,
            id: id.to_owned(),
            plan_text: String::new(),
            origin: RunOrigin::Real,
            scale: "quick".to_owned(),
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            duration_s: 0.0,
            profiles: false,
            command: String::new(),
            machine: MachineInfo::default(),
            setup: Vec::new(),
            cases: Vec::new(),
            measures: Vec::new(),
            repetitions: Vec::new(),
            skipped_work: Vec::new(),
            aborted_reason: None,
            simulated_figures: Vec::new(),
        }
    }

    #[test]
    fn a_run_is_read_as_it_was_written() {
        let mut run = run("x");
        run.origin =
            RunOrigin::Simulated { scenario: "web".to_owned(), seed: 7, commit: String::new() };
        run.cases.push(Case::new("a", LocalizedText::new("one", "一"), 1.5));
        run.measures.push(
            Measure::new("m", LocalizedText::untranslated("m"), "µs", MeasureDirection::Lower)
                .with_repetition_count_determined(),
        );
        let mut part = Repetition { case_id: "a".to_owned(), ..Repetition::default() };
        part.set_value("m", 0.1);
        part.marks.push(Mark { at_s: 2.0, description: LocalizedText::untranslated("x") });
        run.repetitions.push(part);
        let text = serde_json::to_string(&run).unwrap();
        let read: Run = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (read.repetitions, read.cases, read.measures),
            (run.repetitions.clone(), run.cases, run.measures)
        );
        assert_eq!(read.origin, run.origin);
        assert!(text.contains("\"kind\":\"simulated\""), "{text}");
    }
}
