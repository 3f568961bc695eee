//! Command `suimon lab list`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use suimon_lab_run::{Language, LocalizedText, Run, RunOrigin};

use crate::output::print;
use crate::plan::{Plan, SHIPPED_PLANS, Scale};
use crate::shared_flags::{OutputFlags, ResultsFlags, WORK_FOLDER_DEFAULT};

/// Arguments of `list`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ListFlags {
    /// List the runs in the folder of results instead of the plans.
    #[arg(long)]
    runs: bool,
    /// Scale whose duration and requirements are printed; JSON contains all scales.
    #[arg(long, value_enum, default_value_t)]
    scale: Scale,
    /// Folder for disks and other large files, whose free space is checked.
    #[arg(long, value_name = "DIR", default_value = WORK_FOLDER_DEFAULT)]
    work_folder: PathBuf,
    #[command(flatten)]
    form: OutputFlags,
    #[command(flatten)]
    results: ResultsFlags,
}

impl ListFlags {
    pub(crate) fn run(self) -> Result<()> {
        if self.runs { self.runs() } else { self.plans() }
    }

    fn plans(&self) -> Result<()> {
        let plans = plans(&self.work_folder)?;
        if self.form.json {
            return print(&format!("{plans:#}\n"));
        }
        let language = match self.form.language {
            Language::En => "en",
            Language::Ja => "ja",
        };
        for plan in plans.as_array().into_iter().flatten() {
            let scales = plan["scales"].as_array().into_iter().flatten();
            let scale_entry =
                scales.into_iter().find(|scale_entry| scale_entry["scale"] == self.scale.name());
            let scale_entry = scale_entry.cloned().unwrap_or_default();
            let minutes = (scale_entry["seconds"].as_f64().unwrap_or(0.0) / 60.0).max(1.0);
            let (id, title) =
                (plan["id"].as_str().unwrap_or_default(), plan["title"][language].as_str());
            print(&format!("{id:<20} {minutes:>5.0} min  {}\n", title.unwrap_or_default()))?;
            for lacking in scale_entry["missing"].as_array().into_iter().flatten() {
                print(&format!("{:<31} {}\n", "", lacking[language].as_str().unwrap_or_default()))?;
            }
        }
        Ok(())
    }

    fn runs(&self) -> Result<()> {
        let results = self.results.folder();
        let mut values = Vec::new();
        for id in results.ids()? {
            let folder = results.find(&id)?;
            match folder.load() {
                Ok(run) => values.push(summary(&run, folder.is_complete())),
                Err(error) => eprintln!("{id}: {error:#}"),
            }
        }
        if self.form.json {
            return print(&format!("{:#}\n", Value::Array(values)));
        }
        for run in values {
            let text = |key: &str| run[key].as_str().unwrap_or_default().to_owned();
            let state = if run["whole"] == true { "" } else { "  interrupted" };
            print(&format!(
                "{:<40} {:<9} {:<5} {}{state}\n",
                text("id"),
                text("origin"),
                text("scale"),
                text("began")
            ))?;
        }
        Ok(())
    }
}

/// Returns all shipped plans with the requirements that this machine does not meet.
pub(crate) fn plans(work_folder: &Path) -> Result<Value> {
    let mut values: Vec<Value> = Vec::new();
    for (id, text) in SHIPPED_PLANS {
        let plan = Plan::parse(text)?;
        let scales: Vec<Value> = [Scale::Auto, Scale::Quick, Scale::Full]
            .into_iter()
            .map(|scale| at_scale(&plan, scale, work_folder))
            .collect::<Result<_>>()?;
        values.push(json!({
            "id": id, "title": plan.header.title, "question": plan.header.question,
            "document": plan.header.document, "simulation": plan.header.simulation, "scales": scales,
        }));
    }
    Ok(Value::Array(values))
}

/// Returns the estimated duration of a plan at a scale, and its missing requirements.
fn at_scale(plan: &Plan, scale: Scale, work_folder: &Path) -> Result<Value> {
    let experiment = plan.experiment(scale)?;
    let seconds_per_repetition: f64 = experiment.cases().iter().map(|case| case.seconds).sum();
    let seconds = seconds_per_repetition * f64::from(plan.repetition_policy(scale).min);
    let requirements = experiment.requirements();
    let missing: Vec<LocalizedText> =
        requirements.iter().filter_map(|need| need.missing(work_folder)).collect();
    Ok(json!({ "scale": scale.name(), "seconds": seconds, "missing": missing }))
}

/// Returns the JSON object that describes a run in a list.
fn summary(run: &Run, is_whole: bool) -> Value {
    let origin = if run.origin == RunOrigin::Real { "real" } else { "simulated" };
    json!({
        "id": run.id, "origin": origin, "scale": run.scale, "began": run.started_at, "whole": is_whole,
        "took_s": run.duration_s, "parts": run.repetitions.len(),
        "failed": run.repetitions.iter().filter(|part| part.failure.is_some()).count(),
    })
}
