//! Charts of a report, in the form of the document's figures.

use serde::{Deserialize, Serialize};
use suimon_lab_run::LocalizedText;

/// Chart in the report of a plan.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chart {
    pub(crate) title: LocalizedText,
    pub(crate) shape: Shape,
    /// Name of the group of series shown, for charts over time.
    #[serde(rename = "group")]
    pub(crate) series_group: Option<String>,
    /// Ids of the measures shown, for other charts.
    #[serde(default)]
    pub(crate) measures: Vec<String>,
    /// Prefixes of the ids of cases shown; all cases if empty.
    #[serde(default)]
    #[serde(rename = "cases")]
    pub(crate) case_prefixes: Vec<String>,
    /// Name of the x axis of curves.
    #[serde(rename = "x")]
    pub(crate) x_axis_name: Option<LocalizedText>,
}

/// Representation of the values in a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Shape {
    /// Lines of series over time with marks; one chart per case.
    Lines,
    /// Stacked steps of series over time, such as queues per worker; one chart per case.
    Stack,
    /// Group of bars per case, with one bar per measure and confidence intervals.
    Bars,
    /// One bar per case, divided into shares of measures.
    Shares,
    /// Curves over the number at the end of the case's id, after the last `.`. Cases with equal ids
    /// before it form one curve.
    Curves,
}
