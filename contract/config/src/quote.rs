//! Quoting of texts in error messages.

/// Largest number of characters of an invalid value quoted in messages.
const QUOTED_CHARS_MAX: usize = 64;

/// Returns the first characters of a user's text, without control characters that could affect a
/// terminal.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut quoted: String = text
        .chars()
        .take(QUOTED_CHARS_MAX)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() {
        quoted.push('…');
    }
    quoted
}
