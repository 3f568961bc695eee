//! Curves over the number at the end of cases' ids.

use std::collections::BTreeMap;

use suimon_lab_run::{Case, Run, Statistics, Words};

use super::axis::Axis;
use super::canvas::Canvas;
use super::frame::framed;
use crate::number::number;
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
    let mut order: Vec<(&str, Words)> = Vec::new();
    for case in cases {
        let Some((name, at)) = case.id.rsplit_once('.') else { continue };
        let (Ok(at), Some(estimate)) =
            (at.parse::<f64>(), Statistics::from_samples(&run.values(&case.id, &measure.id)))
        else {
            continue;
        };
        if !curves.contains_key(name) {
            order.push((name, before_number(&case.words)));
        }
        curves.entry(name).or_default().push((at, estimate));
    }
    order.truncate(CURVES_MOST);
    let all = || curves.values().flatten();
    let most =
        all().map(|(_, of)| of.interval.map_or(of.mean, |(_, high)| high)).fold(0.0, f64::max);
    let (first, last) =
        all().fold((f64::INFINITY, 0.0_f64), |(first, last), (x, _)| (first.min(*x), last.max(*x)));
    if order.is_empty() {
        return None;
    }
    let mut canvas = Canvas::new(860.0, 320.0);
    let ((left, right), (bottom, top)) = (canvas.across(), canvas.up());
    let y = Axis::linear(0.0, most, bottom, top);
    let is_log = first > 0.0 && last / first >= 8.0;
    let x = if is_log {
        Axis::log(first, last, left + 8.0, right)
    } else {
        Axis::tight(first, last, left + 8.0, right)
    };
    let mut ticks: Vec<f64> = all().map(|(at, _)| *at).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    canvas.y_axis(&y, &Words::untranslated(measure.unit.clone()));
    canvas.x_axis(&x, &ticks, &chart.x.clone().unwrap_or_default());
    for (colour, (name, words)) in order.iter().enumerate() {
        let mut points = curves.remove(name).unwrap_or_default();
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let places: Vec<(f64, f64)> =
            points.iter().map(|(at, of)| (x.coordinate(*at), y.coordinate(of.mean))).collect();
        canvas.line(colour, &places, &words.en);
        for ((place, value), (at, of)) in places.iter().zip(&points) {
            let name = format!(
                "{}, {}: {} {}",
                words.en,
                number(*at, None),
                number(of.mean, None),
                measure.unit
            );
            canvas.dot(colour, *place, *value, &name);
        }
    }
    let legend: Vec<(usize, Words)> =
        order.into_iter().enumerate().map(|(at, (_, words))| (at, words)).collect();
    Some(framed(&measure.words, &canvas.finish(&measure.words), &legend, &[]))
}

/// Returns the name of a case without the number after the last comma.
fn before_number(words: &Words) -> Words {
    let cut = |text: &str, comma: char| {
        text.rsplit_once(comma).map_or(text, |(first, _)| first).trim().to_owned()
    };
    Words::new(
        cut(&words.en, ','),
        cut(&words.ja, if words.ja.contains('、') { '、' } else { ',' }),
    )
}
