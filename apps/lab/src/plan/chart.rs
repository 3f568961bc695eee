//! Charts of a report, in the shape of the document's figures.

use serde::{Deserialize, Serialize};

use crate::words::Words;

/// A chart.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chart {
    pub(crate) title: Words,
    pub(crate) shape: Shape,
    /// The group of series that it shows; for shapes over time.
    pub(crate) group: Option<String>,
    /// The measures that it shows; for the others.
    #[serde(default)]
    pub(crate) measures: Vec<String>,
    /// Which cases: those whose id begins with one of these; all if empty.
    #[serde(default)]
    pub(crate) cases: Vec<String>,
    /// The name of the x axis, of curves.
    pub(crate) x: Option<Words>,
}

/// How it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Shape {
    /// Series over time as lines, with the marks; a chart for each case.
    Lines,
    /// Series over time one on the other, in steps: queues per processor; a chart for each case.
    Stack,
    /// A group of bars for each case with one bar for each measure, and their intervals.
    Bars,
    /// A bar for each case that is divided by measures, as shares of all.
    Shares,
    /// Curves over a number at the end of the case's id, behind the last `.`; cases that are
    /// alike before it are one curve.
    Curves,
}
