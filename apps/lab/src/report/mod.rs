//! Reports: one HTML file, and its data as JSON and CSV.

mod background_load;
mod body;
mod chart;
mod csv;
mod evaluated_run;
mod modules;
pub(crate) mod page;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;
use suimon_lab_run::folder::{HTML_REPORT_FILE, REPORT_FILE};
use suimon_lab_run::{Language, LocalizedText};

use crate::output::print;
use crate::results::{ResultsFolder, RunFolder};
use crate::shared_flags::ResultsFlags;
use evaluated_run::EvaluatedRun;

/// Arguments of `report`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReportFlags {
    /// Runs: ids (`suimon lab list --runs`), folders, or names of plans for their last runs.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// HTML file to write that reports on all of these runs together; none if absent.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Language that the page shows first; it contains English and Japanese.
    #[arg(long, value_name = "en|ja", default_value = "en")]
    language: Language,
    /// Print the results as JSON on standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    results: ResultsFlags,
}

/// Returns the HTML page of one run.
pub(crate) fn render_page(read: &EvaluatedRun, language: Language) -> String {
    page::page(&read.plan.header.title, &body::body(read), language)
}

/// Writes the page and its data (JSON, CSV) to a run's folder. Returns the evaluation and the path
/// of the page.
pub(crate) fn write_report_files(
    folder: &RunFolder,
    language: Language,
) -> Result<(EvaluatedRun, PathBuf)> {
    let read = EvaluatedRun::evaluate(folder.load()?)?;
    folder.write(HTML_REPORT_FILE, render_page(&read, language).as_bytes())?;
    folder.write("values.csv", csv::values(&read.run).as_bytes())?;
    folder.write("samples.csv", csv::samples(&read.run).as_bytes())?;
    if let Some(profile) = csv::profile(&read.run) {
        folder.write("profile.csv", profile.as_bytes())?;
    }
    folder.write(REPORT_FILE, &serde_json::to_vec_pretty(&read.json())?)?;
    Ok((read, folder.path().join(HTML_REPORT_FILE)))
}

impl ReportFlags {
    pub(crate) fn run(self) -> Result<()> {
        let results = self.results.folder();
        let folders: Vec<RunFolder> =
            self.runs.iter().map(|name| results.find(name)).collect::<Result<_>>()?;
        let mut runs = Vec::new();
        for folder in &folders {
            let (read, path) = write_report_files(folder, self.language)?;
            if !self.json {
                let path = self.output.is_none().then_some(path);
                print(&read.summary(path.as_deref(), self.language))?;
            }
            runs.push(read);
        }
        if self.json {
            print(&format!("{:#}\n", Value::Array(runs.iter().map(EvaluatedRun::json).collect())))?;
        }
        let Some(output) = &self.output else { return Ok(()) };
        let title = LocalizedText::new("Experiments", "実験");
        let bodies: Vec<String> = runs.iter().map(body::body).collect();
        let contents = body::contents(&runs);
        let text = page::page(&title, &format!("{contents}{}", bodies.concat()), self.language);
        std::fs::write(output, text).with_context(|| output.display().to_string())?;
        if !self.json {
            print(&format!("{}\n", output.display()))?;
        }
        Ok(())
    }
}

/// Writes the report of a run that has just ended and returns its summary.
pub(crate) fn write_report(results: &ResultsFolder, id: &str) -> Result<String> {
    let (read, path) = write_report_files(&results.find(id)?, Language::En)?;
    Ok(read.summary(Some(&path), Language::En))
}

#[cfg(test)]
pub(crate) mod tests;
