//! Results of a run of a scenario.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;

use crate::figure::Figure;
use crate::kernel::Complaint;

/// Options of a run of a scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) seed: u64,
    /// True for random changes and faults instead of the steps.
    pub(crate) is_swarm: bool,
    /// True if lines of the trace are kept.
    pub(crate) keeps_lines: bool,
}

/// Results of a run of a scenario.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Outcome {
    /// Number of events processed in the run.
    pub(crate) events: u64,
    /// Length of the run in virtual time, in s.
    pub(crate) virtual_s: u64,
    /// Number of facts in the trace.
    pub(crate) facts: u64,
    /// Hash of the trace, which differs if any fact differs.
    pub(crate) trace: String,
    #[serde(skip)]
    pub(crate) lines: String,
    /// First violations of guarantees.
    pub(crate) complaints: Vec<Complaint>,
    pub(crate) complaints_count: u64,
    /// Number of evaluations of guarantees that require an undisturbed period.
    pub(crate) judged: u64,
    /// Information about the run.
    pub(crate) about: Vec<String>,
    /// Results of each step, by kind of scenario.
    pub(crate) steps: Value,
    /// Results of each step as text.
    #[serde(skip)]
    pub(crate) table: Vec<Vec<String>>,
    /// Published figures with the simulated results.
    pub(crate) figures: Vec<Figure>,
    /// Notices of policies to the operator.
    pub(crate) told: Vec<String>,
}

impl Outcome {
    /// Returns the results as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.about {
            let _ = writeln!(text, "{line}");
        }
        text.push_str(&columns(&self.table));
        if !self.figures.is_empty() {
            text.push('\n');
            let mut rows = vec![head(&["STEP", "OF", "PUBLISHED", "OURS", "", "USE"])];
            rows.extend(self.figures.iter().map(row));
            text.push_str(&columns(&rows));
        }
        for told in &self.told {
            let _ = writeln!(text, "reported at {told}");
        }
        let Self { events, virtual_s, facts, trace, .. } = self;
        let _ = writeln!(text, "{virtual_s} s, {events} events, {facts} facts, trace {trace}");
        text
    }

    /// Returns the table of figures in Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text =
            String::from("| step | of | published | ours | | use |\n|---|---|---|---|---|---|\n");
        for figure in &self.figures {
            let _ = writeln!(text, "| {} |", row(figure).join(" | "));
        }
        text
    }
}

fn head(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn row(figure: &Figure) -> Vec<String> {
    let Figure { step, of, published, ours, agrees, used } = figure;
    let agrees = if *agrees { "agrees" } else { "**differs**" };
    [step, of, published, ours, agrees, used.word()].map(ToOwned::to_owned).to_vec()
}

/// Formats rows with aligned columns.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
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
