//! Series over time, as lines or stacked.

use suimon_lab_run::{Case, LocalizedText, Repetition, Run, Series};

use super::axis::Axis;
use super::canvas::Canvas;
use super::frame::render_frame;
use crate::plan::Chart;

/// Draws one chart for each case that has series of the chart's group.
pub(super) fn time_series(
    chart: &Chart,
    run: &Run,
    cases: &[&Case],
    is_stacked: bool,
) -> Vec<String> {
    let group = chart.series_group.as_deref().unwrap_or_default();
    let with_series = cases.iter().filter_map(|case| {
        let part = run.last_repetition_with_series(&case.id)?;
        let series: Vec<&Series> =
            part.series.iter().filter(|series| series.group == group).collect();
        (!series.is_empty()).then_some((*case, part, series))
    });
    let with_series: Vec<_> = with_series.collect();
    // All charts have the same scale, so that they can be compared.
    let highest =
        with_series.iter().map(|(_, _, series)| highest(series, is_stacked)).fold(0.0, f64::max);
    let width = if with_series.len() > 1 { 430.0 } else { 860.0 };
    let is_single = run.cases.len() < 2;
    with_series
        .iter()
        .map(|(case, part, series)| {
            let heading =
                if is_single { LocalizedText::default() } else { case.description.clone() };
            repetition_chart(&heading, part, series, highest, is_stacked, width)
        })
        .collect()
}

fn highest(series: &[&Series], is_stacked: bool) -> f64 {
    let maximum =
        |series: &Series| series.points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    if !is_stacked {
        return series.iter().map(|series| maximum(series)).fold(0.0, f64::max);
    }
    let count = series.iter().map(|series| series.points.len()).max().unwrap_or(0);
    let sum_at = |index: usize| {
        series.iter().filter_map(|series| series.points.get(index)).map(|(_, value)| value).sum()
    };
    (0..count).map(sum_at).fold(0.0, f64::max)
}

fn repetition_chart(
    heading: &LocalizedText,
    part: &Repetition,
    series: &[&Series],
    highest: f64,
    is_stacked: bool,
    width: f64,
) -> String {
    let mut canvas = Canvas::new(width, if width > 500.0 { 280.0 } else { 190.0 });
    let ends = series
        .iter()
        .filter_map(|series| series.points.last())
        .map(|(time, _)| *time)
        .fold(0.0, f64::max);
    let ((left, right), (bottom, top)) = (canvas.x_range(), canvas.y_range());
    let (x, y) =
        (Axis::linear_exact(0.0, ends, left, right), Axis::linear(0.0, highest, bottom, top));
    let unit = series.first().map(|series| series.unit.clone()).unwrap_or_default();
    canvas.draw_y_axis(&y, &LocalizedText::untranslated(unit));
    canvas.draw_x_axis(&x, &x.ticks(8), &LocalizedText::new("seconds", "秒"));
    let mut lower: Vec<(f64, f64)> = Vec::new();
    for (colour, series) in series.iter().enumerate() {
        if is_stacked {
            let upper = stacked_on(&lower, &series.points);
            let mut outline: Vec<(f64, f64)> = steps(&upper, ends)
                .iter()
                .map(|(t, v)| (x.coordinate(*t), y.coordinate(*v)))
                .collect();
            let base = if lower.is_empty() {
                upper.iter().map(|(t, _)| (*t, 0.0)).collect()
            } else {
                lower.clone()
            };
            outline.extend(
                steps(&base, ends).iter().rev().map(|(t, v)| (x.coordinate(*t), y.coordinate(*v))),
            );
            canvas.area(colour, &outline, &series.name);
            lower = upper;
        } else {
            let points: Vec<(f64, f64)> =
                series.points.iter().map(|(t, v)| (x.coordinate(*t), y.coordinate(*v))).collect();
            canvas.line(colour, &points, &series.name);
        }
    }
    for (number, mark) in (1..).zip(&part.marks) {
        canvas.mark(x.coordinate(mark.at_s), number);
    }
    let legend: Vec<(usize, LocalizedText)> = series
        .iter()
        .enumerate()
        .map(|(index, series)| (index, LocalizedText::untranslated(series.name.clone())))
        .collect();
    let marks: Vec<LocalizedText> =
        part.marks.iter().map(|mark| mark.description.clone()).collect();
    render_frame(heading, &canvas.finish(heading), &legend, &marks)
}

/// Returns the points of `points` increased by the values of `lower`. Both series are sampled at
/// the same times. Points are pairs (time, value).
fn stacked_on(lower: &[(f64, f64)], points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let base = |index: usize| lower.get(index).map_or(0.0, |(_, value)| *value);
    points.iter().enumerate().map(|(index, (time, value))| (*time, base(index) + value)).collect()
}

/// Returns the outline of a step curve: each value lasts until the next sample, the last one until
/// the time `ends`.
fn steps(points: &[(f64, f64)], ends: f64) -> Vec<(f64, f64)> {
    let mut outline = Vec::new();
    for (index, (time, value)) in points.iter().enumerate() {
        outline.push((*time, *value));
        let until = points.get(index + 1).map_or(ends, |(next, _)| *next);
        outline.push((until, *value));
    }
    outline
}
