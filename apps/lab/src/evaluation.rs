//! Evaluation of a plan's figures against a run.

use serde::Serialize;
use suimon_lab_run::{LocalizedText, Run, RunOrigin, SimulatedFigure, Statistics};

use crate::number::format_number;
use crate::plan::{Figure, Plan};

/// Figure with its measured value and evaluation.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EvaluatedFigure {
    pub(crate) id: String,
    #[serde(rename = "of")]
    pub(crate) quantity: LocalizedText,
    pub(crate) published: LocalizedText,
    /// Estimate over all repetitions, in the figure's unit.
    pub(crate) measured: Option<Statistics>,
    pub(crate) unit: String,
    #[serde(rename = "digits")]
    pub(crate) decimal_places: Option<usize>,
    pub(crate) simulated: Option<SimulatedFigure>,
    /// True if the figure is a target of Suimon instead of a published value.
    #[serde(rename = "bar")]
    pub(crate) is_target: bool,
    pub(crate) agreement: Agreement,
}

/// Agreement of a measured value with the published value or target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Agreement {
    /// The whole confidence interval, or the only value, is within the bounds.
    Agrees,
    /// The whole confidence interval is outside the bounds.
    Differs,
    /// The confidence interval includes a bound.
    #[serde(rename = "open")]
    Inconclusive,
    /// The figure was not measured in this run.
    NotMeasured,
    /// The figure is informational, without an expectation.
    #[serde(rename = "shown")]
    Informational,
}

/// Evaluates all figures of a plan.
pub(crate) fn evaluate(plan: &Plan, run: &Run) -> Vec<EvaluatedFigure> {
    plan.header.figures.iter().map(|figure| evaluate_figure(figure, run)).collect()
}

fn evaluate_figure(figure: &Figure, run: &Run) -> EvaluatedFigure {
    let measured = match run.origin {
        RunOrigin::Real => Statistics::from_samples(&values(figure, run)),
        RunOrigin::Simulated { .. } => None,
    };
    let unit_of_measure = figure.measured.as_ref().filter(|_| figure.divisor.is_none());
    let unit_of_measure = unit_of_measure.and_then(|source| run.measure(&source.measure));
    let unit = figure.unit.clone().or_else(|| unit_of_measure.map(|measure| measure.unit.clone()));
    EvaluatedFigure {
        id: figure.id.clone(),
        quantity: figure.quantity.clone(),
        published: figure.published.clone(),
        agreement: agreement(figure, measured.as_ref()),
        measured,
        unit: unit.unwrap_or_default(),
        decimal_places: figure.decimal_places,
        is_target: figure.is_target,
        simulated: simulated(figure, run),
    }
}

/// Returns the figure's value in each repetition that contains its sources, in the figure's unit.
fn values(figure: &Figure, run: &Run) -> Vec<f64> {
    let Some(source) = &figure.measured else { return Vec::new() };
    let scaled =
        |value: f64| value * figure.factor.unwrap_or(1.0) - figure.subtrahend.unwrap_or(0.0);
    let of_case = |case: &str| {
        run.repetitions.iter().filter(move |part| part.case_id == case).collect::<Vec<_>>()
    };
    let parts = of_case(&source.case);
    let Some(divisor) = &figure.divisor else {
        return parts
            .iter()
            .filter_map(|part| part.values.get(&source.measure))
            .map(|part| scaled(*part))
            .collect();
    };
    let others = of_case(&divisor.case);
    let ratio = |part: &&suimon_lab_run::Repetition| {
        let other = others
            .iter()
            .find(|other| other.repetition == part.repetition && other.failure.is_none())?;
        let (numerator, denominator) =
            (part.values.get(&source.measure)?, other.values.get(&divisor.measure)?);
        (*denominator != 0.0).then(|| scaled(numerator / denominator))
    };
    parts.iter().filter_map(ratio).collect()
}

fn agreement(figure: &Figure, measured: Option<&Statistics>) -> Agreement {
    let Some(expects) = figure.expected_range else { return Agreement::Informational };
    let Some(measured) = measured else { return Agreement::NotMeasured };
    let (low, high) = measured.confidence_interval.unwrap_or((measured.mean, measured.mean));
    let low_bound = expects.at_least.unwrap_or(f64::NEG_INFINITY);
    let high_bound = expects.at_most.unwrap_or(f64::INFINITY);
    if low >= low_bound && high <= high_bound {
        Agreement::Agrees
    } else if high < low_bound || low > high_bound {
        Agreement::Differs
    } else {
        Agreement::Inconclusive
    }
}

fn simulated(figure: &Figure, run: &Run) -> Option<SimulatedFigure> {
    let expected = figure.simulated.as_ref()?;
    let is_expected = |figure: &&SimulatedFigure| {
        figure.step == expected.step
            && figure.quantity == expected.quantity
            && expected.published.as_ref().is_none_or(|published| *published == figure.published)
    };
    run.simulated_figures.iter().find(is_expected).cloned()
}

impl EvaluatedFigure {
    /// Returns the agreement as a phrase for the report.
    pub(crate) fn agreement_text(&self) -> LocalizedText {
        match (self.agreement, self.is_target) {
            (Agreement::Agrees, false) => LocalizedText::new("agrees", "一致"),
            (Agreement::Differs, false) => LocalizedText::new("differs", "相違"),
            (Agreement::Agrees, true) => {
                LocalizedText::new("Suimon's target met", "Suimon の目標を達成")
            }
            (Agreement::Differs, true) => {
                LocalizedText::new("Suimon's target missed", "Suimon の目標に未達")
            }
            (Agreement::Inconclusive, _) => {
                LocalizedText::new("undecided because of the spread", "ばらつきのため不明")
            }
            (Agreement::NotMeasured, _) => LocalizedText::new("not measured", "未測定"),
            (Agreement::Informational, _) => LocalizedText::default(),
        }
    }

    /// Returns the measured value with half the width of its confidence interval as text; `None` if
    /// it was not measured.
    pub(crate) fn measured_text(&self) -> Option<String> {
        let measured = self.measured?;
        let text = |value: f64| {
            format_number(
                value,
                self.decimal_places.or_else(|| crate::number::decimal_places(measured.mean)),
            )
        };
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        Some(match measured.confidence_interval {
            Some((low, high)) if high > low => {
                format!("{} ± {}{unit}", text(measured.mean), text((high - low) / 2.0))
            }
            _ => format!("{}{unit}", text(measured.mean)),
        })
    }
}

/// Returns the answer to the plan's question, followed by the number of figures that agree with
/// their published values.
pub(crate) fn verdict(plan: &Plan, run: &Run, judged: &[EvaluatedFigure]) -> LocalizedText {
    let answer = plan.header.answer.as_ref().filter(|_| run.origin == RunOrigin::Real);
    let mut words = answer.map(|answer| filled(answer, judged)).unwrap_or_default();
    let summary = match run.origin {
        RunOrigin::Real => count_agreements(judged),
        RunOrigin::Simulated { .. } => {
            let (agree, figure_count) = (
                run.simulated_figures
                    .iter()
                    .filter(|simulated_figure| simulated_figure.is_within_tolerance)
                    .count(),
                run.simulated_figures.len(),
            );
            LocalizedText::new(
                format!(
                    "{agree} of {figure_count} simulated figures agree with the published ones."
                ),
                format!(
                    "シミュレーターでは {figure_count} 個の数値のうち {agree} 個が公表値と一致します。"
                ),
            )
        }
    };
    for (text, summary_text) in [(&mut words.en, &summary.en), (&mut words.ja, &summary.ja)] {
        if !text.is_empty() && !summary_text.is_empty() {
            text.push(' ');
        }
        text.push_str(summary_text);
    }
    words
}

/// Replaces each `{ID}` in the answer by the measured value of the figure with this id.
fn filled(answer: &LocalizedText, judged: &[EvaluatedFigure]) -> LocalizedText {
    let mut words = answer.clone();
    for figure in judged {
        let placeholder = format!("{{{}}}", figure.id);
        words.en = words.en.replace(
            &placeholder,
            &figure.measured_text().unwrap_or_else(|| "(not measured)".to_owned()),
        );
        words.ja = words.ja.replace(
            &placeholder,
            &figure.measured_text().unwrap_or_else(|| "(未測定)".to_owned()),
        );
    }
    words
}

fn count_agreements(judged: &[EvaluatedFigure]) -> LocalizedText {
    let count =
        |agreement: Agreement| judged.iter().filter(|figure| figure.agreement == agreement).count();
    let (agrees, differs, open) =
        (count(Agreement::Agrees), count(Agreement::Differs), count(Agreement::Inconclusive));
    let missing = count(Agreement::NotMeasured);
    let total = agrees + differs + open + missing;
    if total == 0 {
        return LocalizedText::default();
    }
    let (mut en, mut ja) = (
        format!("{agrees} of {total} figures are as expected"),
        format!("{total} 個の数値のうち {agrees} 個が期待どおり"),
    );
    for (count, english, japanese) in [
        (differs, "are not as expected", "期待と相違"),
        (open, "are undecided because of the spread", "ばらつきのため不明"),
        (missing, "were not measured", "未測定"),
    ] {
        if count > 0 {
            en += &format!(", {count} {english}");
            ja += &format!("、{count} 個が{japanese}");
        }
    }
    let single = judged
        .iter()
        .filter_map(|figure| figure.measured)
        .all(|measured| measured.sample_count < 2);
    if single && missing < total {
        en += "; each was measured once, so the spread is unknown";
        ja += "です。各 1 回の測定のため、ばらつきは不明";
    }
    LocalizedText::new(format!("{en}."), format!("{ja}です。"))
}

#[cfg(test)]
mod tests;
