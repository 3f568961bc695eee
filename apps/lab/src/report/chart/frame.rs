//! Frame of a chart: heading, legend and list of marks.

use suimon_lab_run::LocalizedText;

use super::canvas::COLOUR_COUNT;
use crate::report::page::bilingual_html;

/// Returns a chart with its heading and legend.
pub(super) fn render_frame(
    heading: &LocalizedText,
    svg: &str,
    legend: &[(usize, LocalizedText)],
    marks: &[LocalizedText],
) -> String {
    let mut html = String::from("<figure>");
    if !heading.is_empty() {
        html += &format!("<figcaption>{}</figcaption>", bilingual_html(heading));
    }
    html += svg;
    if legend.len() > 1 {
        html += "<ul class=legend>";
        for (colour, words) in legend {
            html += &format!(
                "<li><i class=k{}></i>{}</li>",
                colour % COLOUR_COUNT,
                bilingual_html(words)
            );
        }
        html += "</ul>";
    }
    if !marks.is_empty() {
        html += "<ol class=marks>";
        for words in marks {
            html += &format!("<li>{}</li>", bilingual_html(words));
        }
        html += "</ol>";
    }
    html + "</figure>"
}
