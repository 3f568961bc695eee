//! SVG drawing with axes.

use suimon_lab_run::LocalizedText;

use super::axis::Axis;
use crate::number::format_number;
use crate::report::page::{bilingual_svg_text, escape_html};

/// Number of colours of series. The stylesheet of the page defines them as the classes `k0` to
/// `k7`.
pub(super) const COLOUR_COUNT: usize = 8;

const TOP: f64 = 18.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 34.0;
const MARGIN_LEFT: f64 = 58.0;

/// SVG image that is being drawn.
pub(super) struct Canvas {
    width: f64,
    height: f64,
    body: String,
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// Returns the horizontal range of the plot area: left, right.
    pub(super) fn x_range(&self) -> (f64, f64) {
        (MARGIN_LEFT, self.width - RIGHT)
    }

    /// Returns the vertical range of the plot area: bottom, top.
    pub(super) fn y_range(&self) -> (f64, f64) {
        (self.height - BOTTOM, TOP)
    }

    /// Draws horizontal lines with numbers at the y axis's ticks, and the unit above.
    pub(super) fn draw_y_axis(&mut self, axis: &Axis, unit: &LocalizedText) {
        let (left, right) = self.x_range();
        for tick in axis.ticks(5) {
            let y = axis.coordinate(tick);
            self.body +=
                &format!("<line class=grid x1={left:.1} x2={right:.1} y1={y:.1} y2={y:.1} />");
            self.text(
                left - 6.0,
                y + 4.0,
                "end",
                &LocalizedText::untranslated(format_number(tick, None)),
            );
        }
        self.text(4.0, 11.0, "start", unit);
    }

    /// Draws numbers below the x axis, and its name.
    pub(super) fn draw_x_axis(&mut self, axis: &Axis, ticks: &[f64], name: &LocalizedText) {
        let (bottom, _) = self.y_range();
        for tick in ticks {
            let x = axis.coordinate(*tick);
            self.body += &format!(
                "<line class=tick x1={x:.1} x2={x:.1} y1={bottom:.1} y2={:.1} />",
                bottom + 4.0
            );
            self.text(
                x,
                bottom + 16.0,
                "middle",
                &LocalizedText::untranslated(format_number(*tick, None)),
            );
        }
        self.text(self.width - RIGHT, self.height - 4.0, "end", name);
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: &str, words: &LocalizedText) {
        self.body += &format!(
            "<text x={x:.1} y={y:.1} text-anchor={anchor}>{}</text>",
            bilingual_svg_text(words)
        );
    }

    /// Draws a dashed vertical line at the coordinate `x`, with the number of a mark.
    pub(super) fn mark(&mut self, x: f64, number: usize) {
        let (bottom, top) = self.y_range();
        self.body += &format!("<line class=mark x1={x:.1} x2={x:.1} y1={bottom:.1} y2={top:.1} />");
        self.text(x + 3.0, top - 4.0, "start", &LocalizedText::untranslated(number.to_string()));
    }

    pub(super) fn line(&mut self, colour: usize, points: &[(f64, f64)], name: &str) {
        let coordinates: Vec<String> =
            points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dash = if colour / COLOUR_COUNT % 2 == 1 { " stroke-dasharray=\"5 3\"" } else { "" };
        let (coordinates, name) = (coordinates.join(" "), escape_html(name));
        self.body += &format!(
            "<polyline class=\"l{}\" points=\"{coordinates}\"{dash}><title>{name}</title></polyline>",
            colour % COLOUR_COUNT
        );
    }

    pub(super) fn dot(&mut self, colour: usize, x: f64, y: f64, name: &str) {
        self.body += &format!(
            "<circle class=\"f{}\" cx={x:.1} cy={y:.1} r=2.5><title>{}</title></circle>",
            colour % COLOUR_COUNT,
            escape_html(name)
        );
    }

    pub(super) fn area(&mut self, colour: usize, points: &[(f64, f64)], name: &str) {
        let coordinates: Vec<String> =
            points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.body += &format!(
            "<polygon class=\"f{}\" points=\"{}\"><title>{}</title></polygon>",
            colour % COLOUR_COUNT,
            coordinates.join(" "),
            escape_html(name)
        );
    }

    pub(super) fn bar(
        &mut self,
        colour: usize,
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        name: &str,
    ) {
        self.body += &format!(
            "<rect class=\"f{}\" x={x:.1} y={y:.1} width={:.1} height={:.1}><title>{}</title></rect>",
            colour % COLOUR_COUNT,
            width.max(0.0),
            height.max(0.0),
            escape_html(name)
        );
    }

    /// Draws a confidence interval from its low to its high end.
    pub(super) fn whisker(&mut self, x: f64, low: f64, high: f64) {
        self.body += &format!(
            "<path class=whisker d=\"M{x:.1} {low:.1}V{high:.1}M{0:.1} {low:.1}h6M{0:.1} {high:.1}h6\" />",
            x - 3.0
        );
    }

    pub(super) fn finish(self, description: &LocalizedText) -> String {
        let Self { width, height, body } = self;
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" width={width} height={height} role=img aria-label=\"{}\">{body}</svg>",
            escape_html(&description.en)
        )
    }
}
