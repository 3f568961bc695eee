//! Results of a run of a scenario.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;

use crate::figure::Figure;
use crate::observer::{Violation, Violations};
use crate::trace::Trace;

/// Options of a run of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seed of the random numbers.
    pub seed: u64,
    /// True to make random changes and faults instead of the steps of the scenario.
    pub is_swarm: bool,
    /// True if lines of the trace are kept.
    pub records_lines: bool,
}

/// Results of a run of a scenario.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ScenarioResult {
    /// Number of events processed in the run.
    pub events: u64,
    /// Length of the run in virtual time, in s.
    pub virtual_s: u64,
    /// Number of facts in the trace.
    pub facts: u64,
    /// Hash of the trace as text, which differs if any fact differs.
    #[serde(rename = "trace")]
    pub trace_hash: String,
    /// Lines of the trace, if they were kept.
    #[serde(skip)]
    pub lines: String,
    /// First violations of guarantees.
    #[serde(rename = "complaints")]
    pub violations: Vec<Violation>,
    /// Number of all violations, further ones included.
    #[serde(rename = "complaints_count")]
    pub violation_count: u64,
    /// Number of checks that were made; see [`Violations::checks`](crate::Violations::checks).
    #[serde(rename = "judged")]
    pub checks: u64,
    /// Parameters of the run as text, one line each, for the report.
    #[serde(rename = "about")]
    pub parameters: Vec<String>,
    /// Results of each step as JSON; the fields depend on the kind of scenario.
    pub steps: Value,
    /// Results of each step as text: rows of cells, the first of which is the header.
    #[serde(skip)]
    pub table: Vec<Vec<String>>,
    /// Published figures with the simulated results.
    pub figures: Vec<Figure>,
    /// Notices that policies emitted to the operator, as text.
    #[serde(rename = "told")]
    pub notices: Vec<String>,
}

impl ScenarioResult {
    /// Sets the number of facts, the hash and the kept lines of the run's trace.
    pub fn set_trace(&mut self, trace: &Trace) {
        self.facts = trace.facts();
        self.trace_hash = trace.to_string();
        trace.lines().clone_into(&mut self.lines);
    }

    /// Adds the violations found in the run or in one of its parts.
    pub fn add_violations(&mut self, complaints: Violations) {
        self.violation_count += complaints.count;
        self.checks += complaints.checks;
        self.violations.extend(complaints.first);
    }

    /// Returns the results as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.parameters {
            let _ = writeln!(text, "{line}");
        }
        text.push_str(&align_columns(&self.table));
        if !self.figures.is_empty() {
            text.push('\n');
            let mut rows = vec![head(&["STEP", "OF", "PUBLISHED", "OURS", "", "USE"])];
            rows.extend(self.figures.iter().map(row));
            text.push_str(&align_columns(&rows));
        }
        for report in &self.notices {
            let _ = writeln!(text, "reported at {report}");
        }
        let Self { events, virtual_s, facts, trace_hash: trace, .. } = self;
        let _ = writeln!(text, "{virtual_s} s, {events} events, {facts} facts, trace {trace}");
        text
    }

    /// Returns the table of figures in Markdown.
    pub fn markdown(&self) -> String {
        let mut text =
            String::from("| step | of | published | ours | | use |\n|---|---|---|---|---|---|\n");
        for figure in &self.figures {
            let _ = writeln!(text, "| {} |", row(figure).join(" | "));
        }
        text
    }
}

fn head(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

fn row(figure: &Figure) -> Vec<String> {
    let Figure {
        step,
        quantity: combination,
        published,
        simulated_value: simulated,
        agrees,
        purpose: used,
    } = figure;
    let agrees = if *agrees { "agrees" } else { "**differs**" };
    [step, combination, published, simulated, agrees, used.label()].map(ToOwned::to_owned).to_vec()
}

/// Formats rows with aligned columns.
pub fn align_columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
