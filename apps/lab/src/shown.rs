//! `suimon lab list` and `suimon lab show`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::cli::{ResultsFlags, WORK_FOLDER, print};
use crate::plan::{Plan, SHIPPED, Scale};
use crate::record::{Origin, Run};
use crate::words::{Language, Words};

/// What is listed.
#[derive(Clone, Debug, Args)]
pub(crate) struct ListFlags {
    /// Runs that were made, not plans.
    #[arg(long)]
    runs: bool,
    /// The scale whose time and needs are told; JSON tells of all.
    #[arg(long, value_enum, default_value_t)]
    scale: Scale,
    /// Where disks and other large files would be made.
    #[arg(long, value_name = "DIR", default_value = WORK_FOLDER)]
    work_folder: PathBuf,
    /// JSON instead of text.
    #[arg(long)]
    json: bool,
    /// The language.
    #[arg(long, value_name = "en|ja", default_value = "en")]
    language: Language,
    #[command(flatten)]
    results: ResultsFlags,
}

/// Which plan.
#[derive(Clone, Debug, Args)]
pub(crate) struct ShowFlags {
    /// A shipped plan's name, or a file.
    plan: String,
    /// The scale of what is set up.
    #[arg(long, value_enum, default_value_t)]
    scale: Scale,
    /// JSON instead of text.
    #[arg(long)]
    json: bool,
    /// The language.
    #[arg(long, value_name = "en|ja", default_value = "en")]
    language: Language,
}

impl ListFlags {
    pub(crate) fn run(self) -> Result<()> {
        if self.runs { self.runs() } else { self.plans() }
    }

    fn plans(&self) -> Result<()> {
        let plans = plans(&self.work_folder)?;
        if self.json {
            return print(&format!("{plans:#}\n"));
        }
        let language = match self.language {
            Language::En => "en",
            Language::Ja => "ja",
        };
        for of in plans.as_array().into_iter().flatten() {
            let scales = of["scales"].as_array().into_iter().flatten();
            let at = scales.into_iter().find(|at| at["scale"] == self.scale.name());
            let at = at.cloned().unwrap_or_default();
            let minutes = (at["seconds"].as_f64().unwrap_or(0.0) / 60.0).max(1.0);
            let (id, title) =
                (of["id"].as_str().unwrap_or_default(), of["title"][language].as_str());
            print(&format!("{id:<20} {minutes:>5.0} min  {}\n", title.unwrap_or_default()))?;
            for lacking in at["missing"].as_array().into_iter().flatten() {
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
                Ok(run) => values.push(summary(&run, folder.is_whole())),
                Err(error) => eprintln!("{id}: {error:#}"),
            }
        }
        if self.json {
            return print(&format!("{:#}\n", Value::Array(values)));
        }
        for of in values {
            let text = |key: &str| of[key].as_str().unwrap_or_default().to_owned();
            let state = if of["whole"] == true { "" } else { "  interrupted" };
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

/// All shipped plans, with what of them is missing on this machine.
pub(crate) fn plans(work_folder: &Path) -> Result<Value> {
    let mut values: Vec<Value> = Vec::new();
    for (id, text) in SHIPPED {
        let plan = Plan::parse(text)?;
        let scales: Vec<Value> = [Scale::Auto, Scale::Quick, Scale::Full]
            .into_iter()
            .map(|scale| at_scale(&plan, scale, work_folder))
            .collect::<Result<_>>()?;
        values.push(json!({
            "id": id, "title": plan.head.title, "question": plan.head.question,
            "document": plan.head.document, "simulation": plan.head.simulation, "scales": scales,
        }));
    }
    Ok(Value::Array(values))
}

/// About how long a plan takes at a scale, and what is not here that it needs.
fn at_scale(plan: &Plan, scale: Scale, work_folder: &Path) -> Result<Value> {
    let experiment = plan.experiment(scale)?;
    let once: f64 = experiment.cases().iter().map(|case| case.seconds).sum();
    let seconds = once * f64::from(plan.repeat(scale).least);
    let needs = experiment.needs();
    let missing: Vec<Words> = needs.iter().filter_map(|need| need.missing(work_folder)).collect();
    Ok(json!({ "scale": scale.name(), "seconds": seconds, "missing": missing }))
}

/// A run in a list.
fn summary(run: &Run, is_whole: bool) -> Value {
    let origin = if run.origin == Origin::Real { "real" } else { "simulated" };
    json!({
        "id": run.id, "origin": origin, "scale": run.scale, "began": run.began, "whole": is_whole,
        "took_s": run.took_s, "parts": run.parts.len(),
        "failed": run.parts.iter().filter(|part| part.failure.is_some()).count(),
    })
}

impl ShowFlags {
    pub(crate) fn run(self) -> Result<()> {
        let plan = Plan::find(&self.plan)?;
        let experiment = plan.experiment(self.scale)?;
        let (setup, cases) = (experiment.setup(), experiment.cases());
        if self.json {
            let head = &plan.head;
            return print(&format!(
                "{:#}\n",
                json!({
                    "id": head.id, "kind": head.kind, "document": head.document, "title": head.title,
                    "question": head.question, "published": head.published, "simulation": head.simulation,
                    "setup": setup, "cases": cases, "measures": experiment.measures(),
                    "figures": head.figures, "charts": head.charts,
                })
            ));
        }
        let language = self.language;
        let mut text = format!("{}\n\n", plan.head.title.in_language(language));
        text += &format!("{}\n\n", plan.head.question.in_language(language));
        text +=
            &format!("{} {}\n\n", plan.head.document, plan.head.published.in_language(language));
        for words in setup {
            text += &format!("{}\n", words.in_language(language));
        }
        text += "\n";
        for case in cases {
            text +=
                &format!("  {:<40} {:>6.0} s\n", case.words.in_language(language), case.seconds);
        }
        print(&text)
    }
}
