//! Strings in messages of the protocol.

/// Maximum length in bytes of a name, query or message (section "Conventions").
pub const STRING_BYTES_MAX: usize = 4096;

/// Decodes a string; `None` if it is not UTF-8 or contains a NUL byte (section "Conventions"). Does
/// not limit the length.
pub(crate) fn decode_text(bytes: &[u8]) -> Option<&str> {
    let text = core::str::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// Returns the longest prefix of `text` with at most `bytes_max` bytes that ends at a character
/// boundary.
pub(crate) fn truncate(text: &str, bytes_max: usize) -> &str {
    let prefix = (0..=bytes_max.min(text.len())).rev().find_map(|end| text.get(..end));
    prefix.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_truncated_between_characters() {
        for (text, bytes_max, expected) in
            [("水門", 6, "水門"), ("水門", 5, "水"), ("水門", 2, ""), ("ab", 1, "a"), ("", 9, "")]
        {
            assert_eq!(truncate(text, bytes_max), expected);
        }
    }

    #[test]
    fn text_is_utf8_without_nul() {
        assert_eq!(decode_text("水門".as_bytes()), Some("水門"));
        assert_eq!(decode_text(b""), Some(""));
        assert_eq!(decode_text(b"a\0"), None);
        assert_eq!(decode_text(&[0xff]), None);
    }
}
