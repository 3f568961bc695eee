//! Results of a lab run, and comparison of two runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{LabRun, LabText};

/// Response of `GET /1.0/lab/runs/{id}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabRunDetails {
    /// Entry of the run in the list of runs.
    #[serde(flatten)]
    pub run: LabRun,
    /// True if a report is available.
    pub has_report: bool,
    /// Reason why the run ended before all measurements; absent if it was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "cut_short")]
    pub early_end_reason: Option<String>,
    /// Figures of the plan; empty without a report.
    pub figures: Vec<LabFigure>,
    /// Published figures with the simulator's results.
    pub simulated_figures: Vec<LabSimulatedFigure>,
}

/// Figure of a plan: published, measured and simulated value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabFigure {
    /// Id, unique in the plan.
    pub id: String,
    /// Subject of the figure in both languages.
    #[serde(rename = "of")]
    pub subject: LabText,
    /// Published value as stated in the document.
    pub published: LabText,
    /// Estimate over all repetitions; absent if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<LabEstimate>,
    /// Unit of the measured value; empty for a dimensionless one.
    pub unit: String,
    /// Decimal places shown; as many as the value needs if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "digits")]
    pub decimal_places: Option<u8>,
    /// Result of the simulator for this figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<LabSimulatedFigure>,
    /// True if the figure is a target of Suimon instead of a published value.
    #[serde(default)]
    #[serde(rename = "bar")]
    pub is_target: bool,
    /// Agreement of the measured value with the expectation.
    pub agreement: LabAgreement,
}

/// Agreement of a measured value with the published value or target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabAgreement {
    /// The whole confidence interval is within the bounds.
    Agrees,
    /// The whole confidence interval is outside the bounds.
    Differs,
    /// The confidence interval includes a bound.
    #[serde(rename = "open")]
    Inconclusive,
    /// The figure was not measured in this run.
    NotMeasured,
    /// The figure is informational, without an expectation.
    #[serde(rename = "shown")]
    Informational,
}

/// Statistics of repeated measurements with a 95 % confidence interval of the mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabEstimate {
    /// Number of samples (repetitions).
    pub samples: u64,
    /// Arithmetic mean of the samples.
    pub mean: f64,
    /// Median of the samples.
    pub median: f64,
    /// Lowest value of a sample.
    #[serde(rename = "least")]
    pub min: f64,
    /// Highest value of a sample.
    #[serde(rename = "most")]
    pub max: f64,
    /// Lower and upper bound of the mean (95 % confidence); absent for one sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "interval")]
    pub confidence_interval: Option<[f64; 2]>,
}

/// Published figure and the simulator's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabSimulatedFigure {
    /// Step of the simulated scenario.
    pub step: String,
    /// Subject of the figure, such as a metric.
    #[serde(rename = "of")]
    pub subject: String,
    /// Published value as stated in the document.
    pub published: String,
    /// Value that the model computed.
    #[serde(rename = "ours")]
    pub simulated: String,
    /// True if the result is within the tolerance of the scenario.
    pub agrees: bool,
    /// Use of the figure: `calibration`, `held-out` or `bar`.
    #[serde(rename = "use")]
    pub purpose: String,
}

/// Response of `GET /1.0/lab/compare`: two runs, compared by measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabComparison {
    /// Id of the first run.
    #[serde(rename = "a")]
    pub first_run: String,
    /// Id of the second run.
    #[serde(rename = "b")]
    pub second_run: String,
    /// True if the runs were made on different machines.
    #[serde(rename = "other_machine")]
    pub machines_differ: bool,
    /// Measures of the cases contained in both runs.
    #[serde(rename = "compared")]
    pub measures: Vec<LabMeasureComparison>,
}

/// Comparison of one measure of one case in two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "LabCompared")]
#[schema(as = LabCompared)]
pub struct LabMeasureComparison {
    /// Id of the case; unique together with the measure.
    pub case: String,
    /// Description of the case in both languages.
    #[serde(rename = "case_words")]
    pub case_text: LabText,
    /// Id of the measure.
    pub measure: String,
    /// Description of the measure in both languages.
    #[serde(rename = "measure_words")]
    pub measure_text: LabText,
    /// Unit of the measure; empty for a dimensionless one.
    pub unit: String,
    /// Estimate of the first run.
    #[serde(rename = "a")]
    pub first_run: LabEstimate,
    /// Estimate of the second run.
    #[serde(rename = "b")]
    pub second_run: LabEstimate,
    /// Difference of `b` from `a` in percent of `a`; absent if `a` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "more_percent")]
    pub difference_percent: Option<f64>,
    /// Probability of such a difference by chance (p-value): Mann-Whitney test with Holm's
    /// correction.
    #[serde(rename = "p")]
    pub p_value: f64,
    /// Conclusion from the difference and its significance.
    pub finding: LabFinding,
}

/// Conclusion of a comparison of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LabFinding {
    /// The second run is significantly better.
    Better,
    /// The second run is significantly worse.
    Worse,
    /// The runs differ significantly, and neither value is better.
    Different,
    /// The difference is not significant.
    #[serde(rename = "not-shown")]
    NotSignificant,
    /// Too few repetitions for any difference to be significant.
    #[serde(rename = "too-few")]
    TooFewSamples,
}
