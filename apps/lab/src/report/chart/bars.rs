//! Bar charts by case, with confidence intervals.

use suimon_lab_run::{Case, LocalizedText, Run, Statistics};

use super::axis::Axis;
use super::canvas::Canvas;
use super::frame::render_frame;
use crate::number::format_number;
use crate::plan::Chart;

/// Draws one chart for each unit of the chart's measures.
pub(super) fn bars(chart: &Chart, run: &Run, cases: &[&Case]) -> Vec<String> {
    let mut units: Vec<&str> = Vec::new();
    for measure in chart.measures.iter().filter_map(|id| run.measure(id)) {
        if !units.contains(&measure.unit.as_str()) {
            units.push(&measure.unit);
        }
    }
    units.into_iter().filter_map(|unit| draw_unit(chart, run, cases, unit)).collect()
}

fn draw_unit(chart: &Chart, run: &Run, cases: &[&Case], unit: &str) -> Option<String> {
    let measures: Vec<_> = chart
        .measures
        .iter()
        .filter_map(|id| run.measure(id))
        .filter(|measure| measure.unit == unit)
        .collect();
    let bars: Vec<(&Case, Vec<Option<Statistics>>)> = cases
        .iter()
        .map(|case| {
            let measure = measures
                .iter()
                .map(|measure| Statistics::from_samples(&run.values(&case.id, &measure.id)));
            (*case, measure.collect::<Vec<_>>())
        })
        .filter(|(_, estimates)| estimates.iter().any(Option::is_some))
        .collect();
    if bars.is_empty() {
        return None;
    }
    let reach = |statistics: &Statistics| {
        statistics
            .confidence_interval
            .map_or(statistics.mean, |(_, high)| high.max(statistics.mean))
    };
    let estimates = || bars.iter().flat_map(|(_, statistics)| statistics).flatten();
    let (highest, lowest) = (
        estimates().map(reach).fold(0.0, f64::max),
        estimates().map(|statistics| statistics.mean).fold(0.0, f64::min),
    );
    let mut canvas = Canvas::new(860.0, 300.0);
    let ((left, right), (bottom, top)) = (canvas.x_range(), canvas.y_range());
    let y = Axis::linear(lowest, highest, bottom, top);
    canvas.draw_y_axis(&y, &LocalizedText::untranslated(unit));
    let slot = (right - left) / bars.len() as f64;
    let width = (slot * 0.8 / measures.len().max(1) as f64).min(60.0);
    let zero = y.coordinate(0.0);
    for (index, (case, estimates)) in bars.iter().enumerate() {
        let middle = left + slot * (index as f64 + 0.5);
        let first = middle - width * estimates.len() as f64 / 2.0;
        for (colour, estimate) in estimates.iter().enumerate() {
            let Some(estimate) = estimate else { continue };
            let (x, end) = (first + width * colour as f64, y.coordinate(estimate.mean));
            let name =
                format!("{}: {} {unit}", case.description.en, format_number(estimate.mean, None));
            canvas.bar(colour, x + 1.0, end.min(zero), width - 2.0, (end - zero).abs(), &name);
            if let Some((low, high)) = estimate.confidence_interval {
                canvas.whisker(
                    x + width / 2.0,
                    y.coordinate(low.max(0.0_f64.min(lowest))),
                    y.coordinate(high),
                );
            }
        }
        // Long names are placed in two alternating rows.
        let row = if bars.len() > 4 && index % 2 == 1 { 28.0 } else { 15.0 };
        let max_chars = ((slot * 1.7 / 6.5) as usize).max(6);
        canvas.text(middle, bottom + row, "middle", &truncate(&case.description, max_chars));
    }
    let legend: Vec<(usize, LocalizedText)> = measures
        .iter()
        .enumerate()
        .map(|(index, measure)| (index, measure.description.clone()))
        .collect();
    let heading = match measures.as_slice() {
        [only] => only.description.clone(),
        _ => LocalizedText::default(),
    };
    Some(render_frame(&heading, &canvas.finish(&chart.title), &legend, &[]))
}

/// Truncates the text of both languages to about the width of `max_chars` Latin characters.
fn truncate(words: &LocalizedText, max_chars: usize) -> LocalizedText {
    let cut = |text: &str, max_chars: usize| {
        if text.chars().count() <= max_chars {
            return text.to_owned();
        }
        text.chars().take(max_chars.saturating_sub(1)).chain(['…']).collect()
    };
    // Japanese characters are about twice as wide.
    LocalizedText::new(cut(&words.en, max_chars), cut(&words.ja, max_chars * 2 / 3))
}
