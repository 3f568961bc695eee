//! Charts as SVG, with colours of the page and text in both languages.

mod axis;
mod bars;
mod canvas;
mod curves;
mod frame;
mod lines;
mod shares;

use suimon_lab_run::{Case, Run};

use crate::plan::Shape;
pub(super) use shares::stacked_bars;

/// Draws a chart of a plan as HTML; empty if the run has no values for it.
pub(crate) fn draw(chart: &crate::plan::Chart, run: &Run) -> String {
    let is_selected = |case: &&Case| {
        chart.case_prefixes.is_empty()
            || chart.case_prefixes.iter().any(|prefix| case.id.starts_with(prefix.as_str()))
    };
    let cases: Vec<&Case> = run.cases.iter().filter(is_selected).collect();
    let drawings = match chart.shape {
        Shape::Lines => lines::time_series(chart, run, &cases, false),
        Shape::Stack => lines::time_series(chart, run, &cases, true),
        Shape::Bars => bars::bars(chart, run, &cases),
        Shape::Shares => shares::shares(chart, run, &cases),
        Shape::Curves => curves::curves(chart, run, &cases),
    };
    if drawings.is_empty() {
        return String::new();
    }
    let title = super::page::bilingual_html(&chart.title);
    format!(
        "<section class=chart><h3>{title}</h3><div class=drawings>{}</div></section>\n",
        drawings.concat()
    )
}
