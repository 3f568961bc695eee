//! Recommendations, and the keys of a host file that they change.

use serde::Serialize;
use suimon_lab_run::LocalizedText;

/// Recommendation derived from a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Advice {
    /// Reason for the recommendation in both languages.
    pub(crate) reason: LocalizedText,
    /// Id of the run that the recommendation is derived from.
    #[serde(rename = "run")]
    pub(crate) run_id: String,
    /// Key to change; `None` if the recommendation is informational.
    pub(crate) target: Option<RecommendedSetting>,
}

/// Key of a host file with the recommended value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RecommendedSetting {
    /// Name of the table or array of tables: `team`, `nic`, `power`.
    pub(crate) table: &'static str,
    /// Restricts an array of tables to those in which the key (first element) has the value (second
    /// element).
    #[serde(rename = "only")]
    pub(crate) table_filter: Option<(&'static str, String)>,
    /// Dotted name of the key.
    pub(crate) key: &'static str,
    pub(crate) value: Value,
}

/// Recommended value of a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Value {
    Text(String),
    Number(i64),
}
