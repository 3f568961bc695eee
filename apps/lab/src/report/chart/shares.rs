//! A bar across for each case, divided by measures.

use super::canvas::Canvas;
use super::framed;
use crate::number::number;
use crate::plan::Chart;
use crate::record::{Case, Run};
use crate::words::Words;
use suimon_lab_run::Estimate;

const ROW: f64 = 34.0;

/// One drawing. Bars are as long as the case's sum is beside the largest, so that what became
/// less is seen to be less.
pub(super) fn shares(chart: &Chart, run: &Run, cases: &[&Case]) -> Vec<String> {
    let measures: Vec<_> = chart.measures.iter().filter_map(|id| run.measure(id)).collect();
    let rows: Vec<(&Case, Vec<f64>)> = cases
        .iter()
        .map(|case| {
            let mean = |id: &str| {
                Estimate::of(&run.values(&case.id, id)).map_or(0.0, |of| of.mean.max(0.0))
            };
            (*case, measures.iter().map(|measure| mean(&measure.id)).collect::<Vec<f64>>())
        })
        .filter(|(_, of)| of.iter().sum::<f64>() > 0.0)
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let most = rows.iter().map(|(_, of)| of.iter().sum::<f64>()).fold(0.0, f64::max);
    let unit = measures.first().map(|of| of.unit.clone()).unwrap_or_default();
    let (width, left) = (860.0, 190.0);
    let mut canvas = Canvas::new(width, ROW * rows.len() as f64 + 12.0);
    for (at, (case, of)) in rows.iter().enumerate() {
        let (y, sum) = (8.0 + ROW * at as f64, of.iter().sum::<f64>());
        canvas.text(left - 8.0, y + 15.0, "end", &case.words);
        let mut x = left;
        for (colour, (value, measure)) in of.iter().zip(&measures).enumerate() {
            let wide = value / most * (width - left - 90.0);
            let share = value / sum * 100.0;
            let name =
                format!("{}: {} {unit}, {share:.0} %", measure.words.en, number(*value, None));
            canvas.bar(colour, x, y, wide, ROW - 12.0, &name);
            x += wide;
        }
        canvas.text(
            x + 6.0,
            y + 15.0,
            "start",
            &Words::same(format!("{} {unit}", number(sum, None))),
        );
    }
    let legend: Vec<(usize, Words)> =
        measures.iter().enumerate().map(|(at, of)| (at, of.words.clone())).collect();
    vec![framed(&Words::default(), &canvas.finish(&chart.title), &legend, &[])]
}
