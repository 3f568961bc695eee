//! Published figures, and where a run has them.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::words::Words;

/// A published figure.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    /// Unique in the plan.
    pub(crate) id: String,
    /// Of what.
    pub(crate) of: Words,
    /// In the document's words; empty for a bar of Suimon's own.
    pub(crate) published: Words,
    /// What was measured: the mean of all repetitions.
    pub(crate) measured: Option<Source>,
    /// That divided by this, repetition by repetition.
    pub(crate) over: Option<Source>,
    /// What comes out of it is multiplied by this.
    pub(crate) times: Option<f64>,
    /// This is taken from that then: 100 for what is more, in percent, than `over`.
    pub(crate) minus: Option<f64>,
    /// Printed after the number, if it is not the measure's unit.
    pub(crate) unit: Option<String>,
    /// Digits after the point; 0 to 3, by the size of the number if absent.
    pub(crate) digits: Option<usize>,
    /// When a measured value agrees with what was published; absent if it is only shown.
    pub(crate) expects: Option<Expects>,
    /// Whether what is expected is not what was published but what Suimon has to reach.
    #[serde(default)]
    pub(crate) bar: bool,
    /// The simulator's figure of the same: its step, and of what.
    pub(crate) simulated: Option<SimulatedOf>,
}

/// Bounds of what agrees, in the figure's own unit.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expects {
    pub(crate) at_least: Option<f64>,
    pub(crate) at_most: Option<f64>,
}

/// A figure of the simulator.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SimulatedOf {
    pub(crate) step: String,
    pub(crate) of: String,
    /// In the simulator's words, where several are of the same step and thing.
    pub(crate) published: Option<String>,
}

/// A measure of a case: `case/measure`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) case: String,
    pub(crate) measure: String,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.case, self.measure)
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let Some((case, measure)) = text.split_once('/') else {
            return Err(D::Error::custom(format!("`{text}`: write CASE/MEASURE")));
        };
        Ok(Self { case: case.to_owned(), measure: measure.to_owned() })
    }
}
