//! Error messages for clients, formatted without allocation.

use core::fmt;

use crate::text::truncate;

/// Maximum length of a message in bytes; sufficient for every message of this crate.
const MESSAGE_BYTES_MAX: usize = 256;

/// Formatted error message, truncated to [`MESSAGE_BYTES_MAX`] bytes.
pub(crate) struct ErrorMessage {
    bytes: [u8; MESSAGE_BYTES_MAX],
    used: usize,
}

impl ErrorMessage {
    pub(crate) fn new(text: &impl fmt::Display) -> Self {
        let mut message = Self { bytes: [0; MESSAGE_BYTES_MAX], used: 0 };
        // This never fails: excess text is truncated.
        let _ = fmt::Write::write_fmt(&mut message, format_args!("{text}"));
        message
    }

    pub(crate) fn as_str(&self) -> &str {
        let used = self.bytes.get(..self.used).unwrap_or_default();
        core::str::from_utf8(used).unwrap_or_default()
    }
}

impl fmt::Write for ErrorMessage {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let space = self.bytes.get_mut(self.used..).unwrap_or_default();
        let text = truncate(text, space.len()).as_bytes();
        for (to, from) in space.iter_mut().zip(text) {
            *to = *from;
        }
        self.used += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_truncated() {
        assert_eq!(ErrorMessage::new(&"read-only").as_str(), "read-only");
        assert_eq!(ErrorMessage::new(&"").as_str(), "");
        let text = "水".repeat(100);
        assert_eq!(ErrorMessage::new(&text).as_str(), "水".repeat(MESSAGE_BYTES_MAX / 3));
    }
}
