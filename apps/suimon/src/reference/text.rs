//! Text of the reference pages.

pub(crate) const GENERATED: &str =
    "<!-- Made by `suimon docs`. Change the source, not this page. -->\n\n";

/// Escapes text for use in a cell of a table.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
