//! What came of a run.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;

use crate::figure::Figure;
use crate::kernel::Complaint;

/// How a scenario is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) seed: u64,
    /// Random changes and faults instead of the steps.
    pub(crate) is_swarm: bool,
    /// The trace's lines are kept.
    pub(crate) keeps_lines: bool,
}

/// What came of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Outcome {
    /// Events that happened.
    pub(crate) events: u64,
    /// Seconds of virtual time.
    pub(crate) virtual_s: u64,
    /// Facts in the trace.
    pub(crate) facts: u64,
    /// A number that differs if anything in the trace differs.
    pub(crate) trace: String,
    #[serde(skip)]
    pub(crate) lines: String,
    /// What did not hold; the first ones.
    pub(crate) complaints: Vec<Complaint>,
    pub(crate) complaints_count: u64,
    /// How many times a promise was judged that needs an undisturbed while.
    pub(crate) judged: u64,
    /// What is to be known of the run.
    pub(crate) about: Vec<String>,
    /// What each step brought, by kind of scenario.
    pub(crate) steps: Value,
    /// The same for people.
    #[serde(skip)]
    pub(crate) table: Vec<Vec<String>>,
    /// Published figures and ours.
    pub(crate) figures: Vec<Figure>,
    /// What the operator was told.
    pub(crate) told: Vec<String>,
}

impl Outcome {
    /// For people.
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
            let _ = writeln!(text, "told at {told}");
        }
        let Self { events, virtual_s, facts, trace, .. } = self;
        let _ = writeln!(text, "{virtual_s} s, {events} events, {facts} facts, trace {trace}");
        text
    }

    /// The table of figures in Markdown.
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

/// Columns as wide as what is in them.
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
