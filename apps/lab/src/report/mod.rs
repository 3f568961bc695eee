//! Reports: one HTML file, and its data as JSON and CSV.

mod body;
mod chart;
mod csv;
mod modules;
mod noise;
pub(crate) mod page;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};

use crate::cli::{ResultsFlags, print};
use crate::judged::{Judged, judge, verdict};
use crate::plan::Plan;
use crate::record::{Origin, Run};
use crate::results::{Results, RunFolder};
use crate::words::{Language, Words};

/// File name of the page in a run's folder.
pub(crate) const PAGE: &str = "report.html";

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

/// Run with its plan and evaluation.
pub(crate) struct Read {
    pub(crate) plan: Plan,
    pub(crate) run: Run,
    pub(crate) judged: Vec<Judged>,
    pub(crate) verdict: Words,
}

impl Read {
    pub(crate) fn of(run: Run) -> Result<Self> {
        let plan = Plan::parse(&run.plan).with_context(|| format!("the plan of {}", run.id))?;
        let judged = judge(&plan, &run);
        let verdict = verdict(&plan, &run, &judged);
        Ok(Self { plan, run, judged, verdict })
    }

    fn json(&self) -> Value {
        json!({
            "run": self.run.id, "plan": self.plan.head.id, "scale": self.run.scale, "began": self.run.began,
            "origin": self.run.origin, "verdict": self.verdict, "figures": self.judged,
            "simulated": self.run.simulated, "cut_short": self.run.cut_short,
        })
    }
}

/// Returns the page of one run.
pub(crate) fn page_of(read: &Read, language: Language) -> String {
    page::page(&read.plan.head.title, &body::body(read), language)
}

/// Writes the page and its data to a run's folder. Returns the path of the page.
pub(crate) fn write(folder: &RunFolder, language: Language) -> Result<(Read, PathBuf)> {
    let read = Read::of(folder.load()?)?;
    folder.write(PAGE, page_of(&read, language).as_bytes())?;
    folder.write("values.csv", csv::values(&read.run).as_bytes())?;
    folder.write("samples.csv", csv::samples(&read.run).as_bytes())?;
    if let Some(profile) = csv::profile(&read.run) {
        folder.write("profile.csv", profile.as_bytes())?;
    }
    folder.write("report.json", &serde_json::to_vec_pretty(&read.json())?)?;
    Ok((read, folder.path().join(PAGE)))
}

impl ReportFlags {
    pub(crate) fn run(self) -> Result<()> {
        let results = self.results.folder();
        let folders: Vec<RunFolder> =
            self.runs.iter().map(|name| results.find(name)).collect::<Result<_>>()?;
        let mut all = Vec::new();
        for folder in &folders {
            let (read, path) = write(folder, self.language)?;
            if !self.json {
                let path = self.output.is_none().then_some(path);
                print(&told(&read, path.as_deref(), self.language))?;
            }
            all.push(read);
        }
        if self.json {
            print(&format!("{:#}\n", Value::Array(all.iter().map(Read::json).collect())))?;
        }
        let Some(output) = &self.output else { return Ok(()) };
        let title = Words::new("Experiments", "実験");
        let bodies: Vec<String> = all.iter().map(body::body).collect();
        let contents = body::contents(&all);
        let text = page::page(&title, &format!("{contents}{}", bodies.concat()), self.language);
        std::fs::write(output, text).with_context(|| output.display().to_string())?;
        if !self.json {
            print(&format!("{}\n", output.display()))?;
        }
        Ok(())
    }
}

/// Returns the summary of a run for the terminal.
pub(crate) fn told(read: &Read, page: Option<&std::path::Path>, language: Language) -> String {
    let mut text = format!("{}\n{}\n", read.run.id, read.verdict.in_language(language));
    let is_simulated = read.run.origin != Origin::Real;
    for of in read.run.simulated.iter().filter(|_| is_simulated) {
        let finding = if of.agrees { "agrees" } else { "differs" };
        text += &format!("  {}, {}: {} ({}) {finding}\n", of.step, of.of, of.ours, of.published);
    }
    for of in read.judged.iter().filter(|_| !is_simulated) {
        let measured = of.text().unwrap_or_else(|| "–".to_owned());
        text += &format!(
            "  {}: {measured} ({}) {}\n",
            of.of.in_language(language),
            of.published.in_language(language),
            of.finding().in_language(language)
        );
    }
    if let Some(page) = page {
        text += &format!("{}\n", page.display());
    }
    text
}

/// Writes the report of a run that has just ended and returns its summary.
pub(crate) fn after(results: &Results, id: &str) -> Result<String> {
    let (read, path) = write(&results.find(id)?, Language::En)?;
    Ok(told(&read, Some(&path), Language::En))
}

#[cfg(test)]
pub(crate) mod tests;
