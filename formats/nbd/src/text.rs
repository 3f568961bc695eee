//! Strings of the protocol.

/// Most bytes of a string of the protocol: a name, a query, a message (section
/// "Conventions").
pub const STRING_BYTES_MAX: usize = 4096;

/// The string that these bytes are, whatever its length; `None` if they are not UTF-8 or
/// hold a NUL (section "Conventions").
pub(crate) fn text(bytes: &[u8]) -> Option<&str> {
    let text = core::str::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// As much of the front of `text` as fits into `bytes_max` bytes.
pub(crate) fn front(text: &str, bytes_max: usize) -> &str {
    let fits = (0..=bytes_max.min(text.len())).rev().find_map(|end| text.get(..end));
    fits.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_cut_between_characters() {
        for (text, bytes_max, expected) in
            [("水門", 6, "水門"), ("水門", 5, "水"), ("水門", 2, ""), ("ab", 1, "a"), ("", 9, "")]
        {
            assert_eq!(front(text, bytes_max), expected);
        }
    }

    #[test]
    fn text_is_utf8_without_nul() {
        assert_eq!(text("水門".as_bytes()), Some("水門"));
        assert_eq!(text(b""), Some(""));
        assert_eq!(text(b"a\0"), None);
        assert_eq!(text(&[0xff]), None);
    }
}
