//! Run with the evaluation of its plan's figures.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use suimon_lab_run::{Language, LocalizedText, Run, RunOrigin};

use crate::evaluation::{EvaluatedFigure, evaluate, verdict};
use crate::plan::Plan;

/// Run with its plan and the evaluation of the plan's figures.
pub(crate) struct EvaluatedRun {
    pub(crate) plan: Plan,
    pub(crate) run: Run,
    pub(crate) judged: Vec<EvaluatedFigure>,
    pub(crate) verdict: LocalizedText,
}

impl EvaluatedRun {
    pub(crate) fn evaluate(run: Run) -> Result<Self> {
        let plan = Plan::parse(&run.plan)
            .with_context(|| format!("the plan that run {} contains is invalid", run.id))?;
        let judged = evaluate(&plan, &run);
        let verdict = verdict(&plan, &run, &judged);
        Ok(Self { plan, run, judged, verdict })
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "run": self.run.id, "plan": self.plan.head.id, "scale": self.run.scale, "began": self.run.began,
            "origin": self.run.origin, "verdict": self.verdict, "figures": self.judged,
            "simulated": self.run.simulated, "cut_short": self.run.aborted_reason,
        })
    }

    /// Returns the summary of a run for the terminal.
    pub(super) fn summary(&self, page: Option<&Path>, language: Language) -> String {
        let mut text = format!("{}\n{}\n", self.run.id, self.verdict.in_language(language));
        let is_simulated = self.run.origin != RunOrigin::Real;
        for simulated_figure in self.run.simulated.iter().filter(|_| is_simulated) {
            let finding = if simulated_figure.agrees { "agrees" } else { "differs" };
            text += &format!(
                "  {}, {}: {} ({}) {finding}\n",
                simulated_figure.step,
                simulated_figure.quantity,
                simulated_figure.simulated,
                simulated_figure.published
            );
        }
        for figure in self.judged.iter().filter(|_| !is_simulated) {
            let measured = figure.text().unwrap_or_else(|| "–".to_owned());
            text += &format!(
                "  {}: {measured} ({}) {}\n",
                figure.of.in_language(language),
                figure.published.in_language(language),
                figure.finding().in_language(language)
            );
        }
        if let Some(page) = page {
            text += &format!("{}\n", page.display());
        }
        text
    }
}
