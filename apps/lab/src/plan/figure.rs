//! Published figures, and the measures of a run from which their measured values are computed.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use suimon_lab_run::LocalizedText;

/// Figure published by another party, with which results are compared.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    /// Id, unique in the plan.
    pub(crate) id: String,
    /// Quantity that the figure states, in both languages.
    #[serde(rename = "of")]
    pub(crate) quantity: LocalizedText,
    /// Published value as stated in the document; empty for a target of Suimon.
    pub(crate) published: LocalizedText,
    /// Measure whose value, as mean over all repetitions, is the measured value.
    pub(crate) measured: Option<MeasureReference>,
    /// Measure by which the measured value is divided, in each repetition.
    #[serde(rename = "over")]
    pub(crate) divisor: Option<MeasureReference>,
    /// Factor applied to the result.
    #[serde(rename = "times")]
    pub(crate) factor: Option<f64>,
    /// Number subtracted from the result, such as 100 for an increase over `over` in percent.
    #[serde(rename = "minus")]
    pub(crate) subtrahend: Option<f64>,
    /// Unit printed after the number, if it differs from the measure's unit.
    pub(crate) unit: Option<String>,
    /// Decimal places, 0 to 3; by the magnitude of the number if absent.
    #[serde(rename = "digits")]
    pub(crate) decimal_places: Option<usize>,
    /// Range of values that agree with the published one; absent for an informational figure.
    #[serde(rename = "expects")]
    pub(crate) expected_range: Option<ExpectedRange>,
    /// True if the expectation is a target of Suimon instead of the published value.
    #[serde(default)]
    #[serde(rename = "bar")]
    pub(crate) is_target: bool,
    /// Simulated figure for the same subject.
    pub(crate) simulated: Option<SimulatedReference>,
}

/// Bounds of agreement, in the figure's unit.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedRange {
    pub(crate) at_least: Option<f64>,
    pub(crate) at_most: Option<f64>,
}

/// Reference to a figure of the simulator by its step and subject.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SimulatedReference {
    pub(crate) step: String,
    #[serde(rename = "of")]
    pub(crate) quantity: String,
    /// Published value in the simulator's words, to distinguish several figures with the same step
    /// and subject.
    pub(crate) published: Option<String>,
}

/// Reference to a measure of a case: `case/measure`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MeasureReference {
    pub(crate) case: String,
    pub(crate) measure: String,
}

impl fmt::Display for MeasureReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.case, self.measure)
    }
}

impl Serialize for MeasureReference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MeasureReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let Some((case, measure)) = text.split_once('/') else {
            return Err(D::Error::custom(format!("`{text}` is not of the form CASE/MEASURE")));
        };
        Ok(Self { case: case.to_owned(), measure: measure.to_owned() })
    }
}
