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
    pub(crate) evaluated_figures: Vec<EvaluatedFigure>,
    pub(crate) verdict: LocalizedText,
}

impl EvaluatedRun {
    pub(crate) fn evaluate(run: Run) -> Result<Self> {
        let plan = Plan::parse(&run.plan_text)
            .with_context(|| format!("the plan that run {} contains is invalid", run.id))?;
        let judged = evaluate(&plan, &run);
        let verdict = verdict(&plan, &run, &judged);
        Ok(Self { plan, run, evaluated_figures: judged, verdict })
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "run": self.run.id, "plan": self.plan.header.id, "scale": self.run.scale, "began": self.run.started_at,
            "origin": self.run.origin, "verdict": self.verdict, "figures": self.evaluated_figures,
            "simulated": self.run.simulated_figures, "cut_short": self.run.aborted_reason,
        })
    }

    /// Returns the summary of a run for the terminal.
    pub(super) fn summary(&self, page: Option<&Path>, language: Language) -> String {
        let mut text = format!("{}\n{}\n", self.run.id, self.verdict.in_language(language));
        let is_simulated = self.run.origin != RunOrigin::Real;
        for simulated_figure in self.run.simulated_figures.iter().filter(|_| is_simulated) {
            let finding = if simulated_figure.is_within_tolerance { "agrees" } else { "differs" };
            text += &format!(
                "  {}, {}: {} ({}) {finding}\n",
                simulated_figure.step,
                simulated_figure.quantity,
                simulated_figure.simulated,
                simulated_figure.published
            );
        }
        for figure in self.evaluated_figures.iter().filter(|_| !is_simulated) {
            let measured = figure.measured_text().unwrap_or_else(|| "–".to_owned());
            text += &format!(
                "  {}: {measured} ({}) {}\n",
                figure.quantity.in_language(language),
                figure.published.in_language(language),
                figure.agreement_text().in_language(language)
            );
        }
        if let Some(page) = page {
            text += &format!("{}\n", page.display());
        }
        text
    }
}
