//! What came out of a run of the lab, and whether two runs differ.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{LabRun, LabWords};

/// `GET /1.0/lab/runs/{id}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabRunDetails {
    /// As in the list.
    #[serde(flatten)]
    pub run: LabRun,
    /// Whether there is a report to read.
    pub has_report: bool,
    /// Why it ended before all was measured, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<String>,
    /// The plan's figures; nothing while there is no report.
    pub figures: Vec<LabFigure>,
    /// All figures of the simulator.
    pub simulated_figures: Vec<LabSimulatedFigure>,
}

/// A figure of a plan: what was published, what was measured, what the simulator has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabFigure {
    /// Unique in the plan.
    pub id: String,
    /// What it is of.
    pub of: LabWords,
    /// In the document's words.
    pub published: LabWords,
    /// Of all repetitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<LabEstimate>,
    /// Of what was measured; empty if it has none.
    pub unit: String,
    /// How many digits after the point are shown; as many as the value needs if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<u8>,
    /// What the simulator has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<LabSimulatedFigure>,
    /// Whether it is a bar of Suimon's own that is to be reached, not a published value.
    #[serde(default)]
    pub bar: bool,
    /// Whether it is as expected.
    pub agreement: LabAgreement,
}

/// Whether what was measured is what was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabAgreement {
    /// The whole interval is within the bounds.
    Agrees,
    /// The whole interval is outside.
    Differs,
    /// The interval reaches over a bound.
    Open,
    /// It was not measured in this run.
    NotMeasured,
    /// Nothing is expected of it.
    Shown,
}

/// A mean, and between which bounds it is in 95 of 100 such measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabEstimate {
    /// How many.
    pub samples: u64,
    /// Arithmetic.
    pub mean: f64,
    /// The one in the middle.
    pub median: f64,
    /// The lowest.
    pub least: f64,
    /// The highest.
    pub most: f64,
    /// The lower and the upper bound of the mean; absent for one sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// A published figure and what the simulator has for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabSimulatedFigure {
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

/// `GET /1.0/lab/compare`: two runs, measure by measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabComparison {
    /// The first run.
    pub a: String,
    /// The second.
    pub b: String,
    /// Whether they were made on different machines.
    pub other_machine: bool,
    /// Every measure of every case that both have.
    pub compared: Vec<LabCompared>,
}

/// One measure of one case in two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabCompared {
    /// The case, unique together with the measure.
    pub case: String,
    /// What the case is.
    pub case_words: LabWords,
    /// The measure.
    pub measure: String,
    /// What the measure is.
    pub measure_words: LabWords,
    /// Of the measure; empty if it has none.
    pub unit: String,
    /// What the first run has.
    pub a: LabEstimate,
    /// What the second has.
    pub b: LabEstimate,
    /// What b is more than a, in percent; absent where a is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_percent: Option<f64>,
    /// How probable such a difference is where there is none: of Mann and Whitney's test, after
    /// Holm's correction.
    pub p: f64,
    /// What follows.
    pub finding: LabFinding,
}

/// What is found of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabFinding {
    /// The second is better.
    Better,
    /// The second is worse.
    Worse,
    /// Different, where neither is better.
    Different,
    /// No difference that chance would not make.
    NotShown,
    /// So few repetitions that no difference could be shown, however large.
    TooFew,
}
