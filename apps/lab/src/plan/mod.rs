//! Plans: files in `lab/plans`, each describing one experiment.
//!
//! The head contains the question, the published values, and the charts and figures of the report.
//! `[settings]` belong to the kind of experiment. `[quick]` and `[full]` change settings and
//! repetitions for these scales; `auto` uses them unchanged.

mod chart;
mod figure;
mod shipped;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use suimon_lab_experiments::Experiment;
use suimon_lab_run::LocalizedText;
use suimon_lab_run::folder::check_id;

pub(crate) use chart::{Chart, Shape};
pub(crate) use figure::Figure;
pub(crate) use shipped::{SHIPPED_PLANS, find_shipped_plan};

/// Scale of a run: its duration and number of repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scale {
    /// As the plan specifies, size adapted to this host
    #[default]
    Auto,
    /// At most 2 min: verifies that the plan works on this host; values are imprecise
    Quick,
    /// Duration and size of the published experiment
    Full,
}

/// Plan of an experiment.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) header: PlanHeader,
    /// Unmodified text of the file.
    pub(crate) text: String,
}

/// Content of a plan's file except the settings of the experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanHeader {
    /// Id, as in the list of experiments.
    pub(crate) id: String,
    /// Kind of experiment, which defines `[settings]`.
    pub(crate) kind: String,
    /// Short name of the document that the experiment reproduces.
    pub(crate) document: String,
    pub(crate) title: LocalizedText,
    pub(crate) question: LocalizedText,
    /// Setup and results of the document's authors.
    pub(crate) published: LocalizedText,
    /// Answer in the report, with `{figure}` for the measured value of a figure.
    pub(crate) answer: Option<LocalizedText>,
    /// Simulator scenario of the same experiment.
    pub(crate) simulation: Option<String>,
    #[serde(default)]
    #[serde(rename = "repeat")]
    pub(crate) repetition_policy: RepetitionPolicy,
    #[serde(default, rename = "chart")]
    pub(crate) charts: Vec<Chart>,
    #[serde(default, rename = "figure")]
    pub(crate) figures: Vec<Figure>,
    settings: toml::Table,
    #[serde(default)]
    quick: Change,
    #[serde(default)]
    full: Change,
}

/// Number of repetitions of cases.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepetitionPolicy {
    /// Smallest number of repetitions, 1 to 1000.
    #[serde(rename = "least")]
    pub(crate) min: u32,
    /// Largest number of repetitions, used while confidence intervals are too wide.
    #[serde(rename = "most")]
    pub(crate) max: u32,
    /// Sufficient precision: half the width of a deciding measure's 95 % confidence interval, in
    /// percent of its mean.
    #[serde(rename = "narrow_percent")]
    pub(crate) precision_percent: f64,
}

impl Default for RepetitionPolicy {
    fn default() -> Self {
        Self { min: 1, max: 1, precision_percent: 5.0 }
    }
}

/// Changes of a plan's settings for another scale.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    repeat: Option<RepetitionPolicy>,
    #[serde(default)]
    settings: toml::Table,
}

impl Scale {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

impl Plan {
    /// Returns the plan in a file, or the shipped plan with this name.
    ///
    /// # Errors
    /// There is neither such a file nor such a plan, or the plan is invalid; the error names the
    /// key.
    pub(crate) fn find(name: &str) -> Result<Self> {
        if !name.contains('/') && !name.ends_with(".toml") {
            let text = find_shipped_plan(name).with_context(|| {
                let ids: Vec<&str> = SHIPPED_PLANS.iter().map(|(id, _)| *id).collect();
                format!(
                    "there is no plan `{name}`; give the path of a plan file, or one of {}",
                    ids.join(", ")
                )
            })?;
            return Self::parse(text).with_context(|| name.to_owned());
        }
        let text = std::fs::read_to_string(Path::new(name)).with_context(|| name.to_owned())?;
        Self::parse(&text).with_context(|| name.to_owned())
    }

    /// Parses and checks a plan, including its settings at every scale.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let head: PlanHeader = toml::from_str(text)?;
        check_id("id", &head.id)?;
        head.check_repeats()?;
        let plan = Self { header: head, text: text.to_owned() };
        for scale in [Scale::Auto, Scale::Quick, Scale::Full] {
            let experiment = plan.experiment(scale)?;
            plan.check_names(experiment.as_ref())?;
        }
        Ok(plan)
    }

    /// Returns the experiment at a scale.
    ///
    /// # Errors
    /// Invalid settings; the error names the key.
    pub(crate) fn experiment(&self, scale: Scale) -> Result<Box<dyn Experiment>> {
        let mut settings = self.header.settings.clone();
        if let Some(change) = self.header.change(scale) {
            change_all(&mut settings, &change.settings);
        }
        suimon_lab_experiments::make(&self.header.kind, settings)
            .with_context(|| format!("settings at scale {}", scale.name()))
    }

    /// Returns the number of repetitions at a scale.
    pub(crate) fn repetition_policy(&self, scale: Scale) -> RepetitionPolicy {
        let change = self.header.change(scale).and_then(|change| change.repeat);
        change.unwrap_or(self.header.repetition_policy)
    }

    /// Checks that charts and figures refer to existing cases and measures. At a smaller scale a
    /// case may be missing.
    fn check_names(&self, experiment: &dyn Experiment) -> Result<()> {
        let measures = experiment.measures();
        let is_measure = |id: &str| measures.iter().any(|measure| measure.id == id);
        for figure in &self.header.figures {
            for source in [figure.measured.as_ref(), figure.divisor.as_ref()].into_iter().flatten()
            {
                ensure!(
                    is_measure(&source.measure),
                    "figure {}: there is no measure `{}`",
                    figure.id,
                    source.measure
                );
            }
        }
        for chart in &self.header.charts {
            for measure in &chart.measures {
                ensure!(
                    is_measure(measure),
                    "chart {}: there is no measure `{measure}`",
                    chart.title.en
                );
            }
        }
        for id in measures
            .iter()
            .map(|measure| &measure.id)
            .chain(experiment.cases().iter().map(|case| &case.id))
        {
            check_id("case or measure", id)?;
        }
        Ok(())
    }
}

impl PlanHeader {
    fn change(&self, scale: Scale) -> Option<&Change> {
        match scale {
            Scale::Auto => None,
            Scale::Quick => Some(&self.quick),
            Scale::Full => Some(&self.full),
        }
    }

    fn check_repeats(&self) -> Result<()> {
        let changed = [self.quick.repeat, self.full.repeat].into_iter().flatten();
        for repeat in changed.chain([self.repetition_policy]) {
            let RepetitionPolicy { min, max, precision_percent } = repeat;
            ensure!((1..=1000).contains(&min), "repeat.least: {min} is outside of 1 to 1000");
            ensure!((min..=1000).contains(&max), "repeat.most: {max} is outside of {min} to 1000");
            ensure!(
                precision_percent > 0.0 && precision_percent <= 100.0,
                "repeat.narrow_percent must be above 0 and at most 100"
            );
        }
        Ok(())
    }
}

/// Overrides the keys of `table` by those of `overrides`, recursively for nested tables.
fn change_all(table: &mut toml::Table, overrides: &toml::Table) {
    for (key, value) in overrides {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(overrides)) => {
                change_all(inner, overrides);
            }
            _ => drop(table.insert(key.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests;
