//! HTML page of a report: one self-contained file.

use suimon_lab_run::{Language, LocalizedText};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Escapes text for HTML.
pub(crate) fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(character),
        }
    }
    out
}

/// Returns HTML with both languages, of which the page shows one.
pub(crate) fn bilingual_html(words: &LocalizedText) -> String {
    with_both_languages(words, "span")
}

/// Returns both languages as SVG text elements, of which the page shows one.
pub(crate) fn bilingual_svg_text(words: &LocalizedText) -> String {
    with_both_languages(words, "tspan")
}

fn with_both_languages(words: &LocalizedText, tag: &str) -> String {
    let (en, ja) = (escape_html(&words.en), escape_html(&words.ja));
    if en == ja {
        return en;
    }
    format!("<{tag} lang=en>{en}</{tag}><{tag} lang=ja>{ja}</{tag}>")
}

/// Returns a complete HTML page.
pub(crate) fn page(title: &LocalizedText, body: &str, language: Language) -> String {
    let language = match language {
        Language::En => "en",
        Language::Ja => "ja",
    };
    let toggle = "<p class=languages><button type=button data-to=en>English</button> <button type=button data-to=ja>日本語</button></p>";
    format!(
        "<!doctype html>\n<html lang={language} data-language={language}>\n<head><meta charset=utf-8>\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <style>{STYLE}</style></head>\n<body>\n{toggle}\n{body}\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        escape_html(title.in_language(if language == "ja" { Language::Ja } else { Language::En })),
    )
}

/// Returns an HTML table with the CSS class `class`. The first row is the header. Cells are HTML:
/// the caller escapes their text.
pub(crate) fn table(class: &str, rows: &[Vec<String>]) -> String {
    let mut html = format!("<div class=wide><table class=\"{class}\">");
    for (index, row) in rows.iter().enumerate() {
        let (cell, around) =
            if index == 0 { ("th", ("<thead>", "</thead><tbody>")) } else { ("td", ("", "")) };
        html += around.0;
        html += "<tr>";
        for text in row {
            html += &format!("<{cell}>{text}</{cell}>");
        }
        html += "</tr>";
        html += around.1;
        html += "\n";
    }
    html + "</tbody></table></div>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_programs_is_escaped() {
        let words = LocalizedText::new("<b>&", "「<」");
        assert_eq!(
            bilingual_html(&words),
            "<span lang=en>&lt;b&gt;&amp;</span><span lang=ja>「&lt;」</span>"
        );
        assert_eq!(bilingual_html(&LocalizedText::untranslated("\"x\"")), "&quot;x&quot;");
    }
}
