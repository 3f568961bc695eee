//! Lengths of texts.

/// Shortens a text to at most `bytes_max` bytes, at least 3, which end with an ellipsis.
pub(crate) fn shorten(text: &mut String, bytes_max: usize) {
    const ELLIPSIS: &str = "…";
    if text.len() <= bytes_max {
        return;
    }
    let end = (0..=bytes_max - ELLIPSIS.len()).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or(0));
    text.push_str(ELLIPSIS);
}
