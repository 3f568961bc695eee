//! Removal of control characters from texts that QEMU or a guest sends.

/// Maximum length in characters of texts that QEMU sends; longer ones are truncated. QEMU's errors
/// have one or two sentences.
pub const TEXT_CHARS_MAX: usize = 500;

/// Returns a text without control and formatting characters, truncated to `chars_max` characters.
pub(crate) fn sanitize_text(text: &str, chars_max: usize) -> String {
    let clean = |c: char| if c.is_control() || is_formatting_character(c) { '\u{fffd}' } else { c };
    text.chars().take(chars_max).map(clean).collect()
}

/// Returns true for characters that reorder text or have no width (Unicode's `Bidi_Control`, and
/// zero-width characters).
const fn is_formatting_character(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
