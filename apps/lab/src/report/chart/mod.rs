//! Charts as SVG, with colours of the page and text in both languages.

mod axis;
mod bars;
mod canvas;
mod curves;
mod lines;
mod shares;

pub(super) use shares::divided;

use crate::plan::Shape;
use crate::record::{Case, Run};
use crate::words::Words;

/// Draws a chart of a plan as HTML; empty if the run has no values for it.
pub(crate) fn draw(chart: &crate::plan::Chart, run: &Run) -> String {
    let is_wanted = |case: &&Case| {
        chart.cases.is_empty() || chart.cases.iter().any(|of| case.id.starts_with(of.as_str()))
    };
    let cases: Vec<&Case> = run.cases.iter().filter(is_wanted).collect();
    let drawings = match chart.shape {
        Shape::Lines => lines::over_time(chart, run, &cases, false),
        Shape::Stack => lines::over_time(chart, run, &cases, true),
        Shape::Bars => bars::bars(chart, run, &cases),
        Shape::Shares => shares::shares(chart, run, &cases),
        Shape::Curves => curves::curves(chart, run, &cases),
    };
    if drawings.is_empty() {
        return String::new();
    }
    let title = super::page::both(&chart.title);
    format!(
        "<section class=chart><h3>{title}</h3><div class=drawings>{}</div></section>\n",
        drawings.concat()
    )
}

/// Returns a chart with its heading and legend.
fn framed(heading: &Words, svg: &str, legend: &[(usize, Words)], marks: &[Words]) -> String {
    let mut html = String::from("<figure>");
    if !heading.is_empty() {
        html += &format!("<figcaption>{}</figcaption>", super::page::both(heading));
    }
    html += svg;
    if legend.len() > 1 {
        html += "<ul class=legend>";
        for (colour, words) in legend {
            html += &format!(
                "<li><i class=k{}></i>{}</li>",
                colour % canvas::COLOURS,
                super::page::both(words)
            );
        }
        html += "</ul>";
    }
    if !marks.is_empty() {
        html += "<ol class=marks>";
        for words in marks {
            html += &format!("<li>{}</li>", super::page::both(words));
        }
        html += "</ol>";
    }
    html + "</figure>"
}
