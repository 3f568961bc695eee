//! Bar charts by case, with confidence intervals.

use suimon_lab_run::{Case, Run, Statistics, Words};

use super::axis::Axis;
use super::canvas::Canvas;
use super::frame::framed;
use crate::number::number;
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
        .filter(|of| of.unit == unit)
        .collect();
    let bars: Vec<(&Case, Vec<Option<Statistics>>)> = cases
        .iter()
        .map(|case| {
            let of = measures
                .iter()
                .map(|measure| Statistics::from_samples(&run.values(&case.id, &measure.id)));
            (*case, of.collect::<Vec<_>>())
        })
        .filter(|(_, of)| of.iter().any(Option::is_some))
        .collect();
    if bars.is_empty() {
        return None;
    }
    let reach = |of: &Statistics| of.interval.map_or(of.mean, |(_, high)| high.max(of.mean));
    let all = || bars.iter().flat_map(|(_, of)| of).flatten();
    let (most, least) =
        (all().map(reach).fold(0.0, f64::max), all().map(|of| of.mean).fold(0.0, f64::min));
    let mut canvas = Canvas::new(860.0, 300.0);
    let ((left, right), (bottom, top)) = (canvas.across(), canvas.up());
    let y = Axis::linear(least, most, bottom, top);
    canvas.y_axis(&y, &Words::untranslated(unit));
    let slot = (right - left) / bars.len() as f64;
    let width = (slot * 0.8 / measures.len().max(1) as f64).min(60.0);
    let zero = y.coordinate(0.0);
    for (at, (case, of)) in bars.iter().enumerate() {
        let middle = left + slot * (at as f64 + 0.5);
        let first = middle - width * of.len() as f64 / 2.0;
        for (colour, estimate) in of.iter().enumerate() {
            let Some(estimate) = estimate else { continue };
            let (x, end) = (first + width * colour as f64, y.coordinate(estimate.mean));
            let name = format!("{}: {} {unit}", case.words.en, number(estimate.mean, None));
            canvas.bar(colour, x + 1.0, end.min(zero), width - 2.0, (end - zero).abs(), &name);
            if let Some((low, high)) = estimate.interval {
                canvas.whisker(
                    x + width / 2.0,
                    y.coordinate(low.max(0.0_f64.min(least))),
                    y.coordinate(high),
                );
            }
        }
        // Long names are placed in two alternating rows.
        let row = if bars.len() > 4 && at % 2 == 1 { 28.0 } else { 15.0 };
        let letters = ((slot * 1.7 / 6.5) as usize).max(6);
        canvas.text(middle, bottom + row, "middle", &truncate(&case.words, letters));
    }
    let legend: Vec<(usize, Words)> =
        measures.iter().enumerate().map(|(at, of)| (at, of.words.clone())).collect();
    let heading = match measures.as_slice() {
        [only] => only.words.clone(),
        _ => Words::default(),
    };
    Some(framed(&heading, &canvas.finish(&chart.title), &legend, &[]))
}

/// Truncates both languages to a number of characters.
fn truncate(words: &Words, letters: usize) -> Words {
    let cut = |text: &str, letters: usize| {
        if text.chars().count() <= letters {
            return text.to_owned();
        }
        text.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
    };
    // Japanese characters are about twice as wide.
    Words::new(cut(&words.en, letters), cut(&words.ja, letters * 2 / 3))
}
