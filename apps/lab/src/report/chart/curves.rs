//! Curves over the number at the end of cases' ids.

use std::collections::BTreeMap;

use suimon_lab_run::{Case, LocalizedText, Run, Statistics};

use super::axis::Axis;
use super::canvas::Canvas;
use super::frame::render_frame;
use crate::number::format_number;
use crate::plan::Chart;

/// Largest number of curves in one chart, beyond which colours would repeat too often.
const CURVES_MOST: usize = 16;

/// Draws one chart for each measure.
pub(super) fn curves(chart: &Chart, run: &Run, cases: &[&Case]) -> Vec<String> {
    chart.measures.iter().filter_map(|measure| draw_measure(chart, run, cases, measure)).collect()
}

fn draw_measure(chart: &Chart, run: &Run, cases: &[&Case], measure: &str) -> Option<String> {
    let measure = run.measure(measure)?;
    let mut curves: BTreeMap<&str, Vec<(f64, Statistics)>> = BTreeMap::new();
    let mut order: Vec<(&str, LocalizedText)> = Vec::new();
    for case in cases {
        let Some((name, depth)) = case.id.rsplit_once('.') else { continue };
        let (Ok(depth), Some(estimate)) =
            (depth.parse::<f64>(), Statistics::from_samples(&run.values(&case.id, &measure.id)))
        else {
            continue;
        };
        if !curves.contains_key(name) {
            order.push((name, before_number(&case.description)));
        }
        curves.entry(name).or_default().push((depth, estimate));
    }
    order.truncate(CURVES_MOST);
    let points_of = || curves.values().flatten();
    let highest = points_of()
        .map(|(_, statistics)| {
            statistics.confidence_interval.map_or(statistics.mean, |(_, high)| high)
        })
        .fold(0.0, f64::max);
    let (first, last) = points_of()
        .fold((f64::INFINITY, 0.0_f64), |(first, last), (x, _)| (first.min(*x), last.max(*x)));
    if order.is_empty() {
        return None;
    }
    let mut canvas = Canvas::new(860.0, 320.0);
    let ((left, right), (bottom, top)) = (canvas.x_range(), canvas.y_range());
    let y = Axis::linear(0.0, highest, bottom, top);
    let is_log = first > 0.0 && last / first >= 8.0;
    let x = if is_log {
        Axis::log(first, last, left + 8.0, right)
    } else {
        Axis::linear_exact(first, last, left + 8.0, right)
    };
    let mut ticks: Vec<f64> = points_of().map(|(depth, _)| *depth).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    canvas.draw_y_axis(&y, &LocalizedText::untranslated(measure.unit.clone()));
    canvas.draw_x_axis(&x, &ticks, &chart.x_axis_name.clone().unwrap_or_default());
    for (colour, (name, words)) in order.iter().enumerate() {
        let mut points = curves.remove(name).unwrap_or_default();
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let coordinates: Vec<(f64, f64)> = points
            .iter()
            .map(|(depth, statistics)| (x.coordinate(*depth), y.coordinate(statistics.mean)))
            .collect();
        canvas.line(colour, &coordinates, &words.en);
        for ((x_coordinate, value), (depth, statistics)) in coordinates.iter().zip(&points) {
            let name = format!(
                "{}, {}: {} {}",
                words.en,
                format_number(*depth, None),
                format_number(statistics.mean, None),
                measure.unit
            );
            canvas.dot(colour, *x_coordinate, *value, &name);
        }
    }
    let legend: Vec<(usize, LocalizedText)> =
        order.into_iter().enumerate().map(|(index, (_, words))| (index, words)).collect();
    Some(render_frame(&measure.description, &canvas.finish(&measure.description), &legend, &[]))
}

/// Returns the name of a case without the number after the last comma.
fn before_number(words: &LocalizedText) -> LocalizedText {
    let cut = |text: &str, comma: char| {
        text.rsplit_once(comma).map_or(text, |(first, _)| first).trim().to_owned()
    };
    LocalizedText::new(
        cut(&words.en, ','),
        cut(&words.ja, if words.ja.contains('、') { '、' } else { ',' }),
    )
}
