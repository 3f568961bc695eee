//! Horizontal bars by case, divided into measures.

use suimon_lab_run::{Case, LocalizedText, Run, Statistics};

use super::canvas::Canvas;
use super::frame::render_frame;
use crate::number::format_number;
use crate::plan::Chart;

const ROW: f64 = 34.0;

/// Draws one chart. The length of a bar is proportional to the case's sum, so that sums can be
/// compared.
pub(super) fn shares(chart: &Chart, run: &Run, cases: &[&Case]) -> Vec<String> {
    let measures: Vec<_> = chart.measures.iter().filter_map(|id| run.measure(id)).collect();
    let mean = |case: &Case, id: &str| {
        Statistics::from_samples(&run.values(&case.id, id))
            .map_or(0.0, |statistics| statistics.mean.max(0.0))
    };
    let rows = cases.iter().map(|case| {
        let parts = measures.iter().map(|measure| mean(case, &measure.id)).collect();
        (&case.description, parts)
    });
    let names: Vec<LocalizedText> =
        measures.iter().map(|measure| measure.description.clone()).collect();
    let unit = measures.first().map(|measure| measure.unit.clone()).unwrap_or_default();
    stacked_bars(&chart.title, &names, &unit, rows.collect()).into_iter().collect()
}

/// Draws one bar per row, divided into one section per name; returns `None` if all values are 0.
pub(crate) fn stacked_bars(
    title: &LocalizedText,
    names: &[LocalizedText],
    unit: &str,
    mut rows: Vec<(&LocalizedText, Vec<f64>)>,
) -> Option<String> {
    rows.retain(|(_, values)| values.iter().sum::<f64>() > 0.0);
    if rows.is_empty() {
        return None;
    }
    let highest = rows.iter().map(|(_, values)| values.iter().sum::<f64>()).fold(0.0, f64::max);
    let longest = rows.iter().map(|(row, _)| room(&row.en).max(room(&row.ja))).fold(0.0, f64::max);
    let (width, left) = (860.0, (longest + 16.0).clamp(120.0, 400.0));
    let mut canvas = Canvas::new(width, ROW * rows.len() as f64 + 12.0);
    for (index, (row, values)) in rows.iter().enumerate() {
        let (y, sum) = (8.0 + ROW * index as f64, values.iter().sum::<f64>());
        canvas.text(left - 8.0, y + 15.0, "end", row);
        let mut x = left;
        for (colour, (value, name)) in values.iter().zip(names).enumerate() {
            let wide = value / highest * (width - left - 90.0);
            let share = value / sum * 100.0;
            let name = format!("{}: {} {unit}, {share:.0} %", name.en, format_number(*value, None));
            canvas.bar(colour, x, y, wide, ROW - 12.0, &name);
            x += wide;
        }
        let sum = LocalizedText::untranslated(format!("{} {unit}", format_number(sum, None)));
        canvas.text(x + 6.0, y + 15.0, "start", &sum);
    }
    let legend: Vec<(usize, LocalizedText)> = names.iter().cloned().enumerate().collect();
    Some(render_frame(&LocalizedText::default(), &canvas.finish(title), &legend, &[]))
}

/// Returns the approximate width of a text in Latin characters; East Asian characters count twice.
fn room(text: &str) -> f64 {
    text.chars().map(|character| if character > '\u{2e80}' { 11.0 } else { 6.0 }).sum()
}
