//! Decoding of the data of a handshake option.

use super::option_code::OptionCode;
use super::option_error::OptionError;
use crate::field_codec::FieldReader;
use crate::text::{STRING_BYTES_MAX, decode_text};

/// Length of an option header in bytes: magic, code, data length.
pub(crate) const OPTION_HEADER_BYTES: usize = 16;

/// Sequential reader of an option's data. Its errors name the option, field and offset.
pub(crate) struct OptionDataReader<'a> {
    option: OptionCode,
    bytes: usize,
    reader: FieldReader<'a>,
}

impl<'a> OptionDataReader<'a> {
    pub(crate) const fn new(option: OptionCode, data: &'a [u8]) -> Self {
        Self { option, bytes: data.len(), reader: FieldReader::new(data) }
    }

    /// Returns the offset of the next field from the start of the option, in bytes.
    pub(crate) const fn offset(&self) -> usize {
        OPTION_HEADER_BYTES + self.bytes.saturating_sub(self.reader.remaining())
    }

    const fn truncated(&self, field: &'static str, offset: usize) -> OptionError {
        let end = OPTION_HEADER_BYTES + self.bytes;
        OptionError::Truncated { option: self.option, field, offset, end }
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, OptionError> {
        let offset = self.offset();
        self.reader.u16().ok_or_else(|| self.truncated(field, offset))
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, OptionError> {
        let offset = self.offset();
        self.reader.u32().ok_or_else(|| self.truncated(field, offset))
    }

    /// Reads a string that is preceded by its 32-bit length.
    pub(crate) fn string(&mut self, field: &'static str) -> Result<&'a str, OptionError> {
        let bytes = self.u32(field)? as usize;
        self.read_string(field, bytes)
    }

    /// Reads a string of `bytes` bytes.
    fn read_string(&mut self, field: &'static str, bytes: usize) -> Result<&'a str, OptionError> {
        let (option, offset) = (self.option, self.offset());
        if bytes > STRING_BYTES_MAX {
            let max = STRING_BYTES_MAX;
            return Err(OptionError::StringTooLong { option, field, offset, bytes, max });
        }
        let octets = self.reader.bytes(bytes).ok_or_else(|| self.truncated(field, offset))?;
        decode_text(octets).ok_or(OptionError::NotText { option, field, offset })
    }

    /// Reads the remaining data as one string.
    pub(crate) fn last_string(mut self, field: &'static str) -> Result<&'a str, OptionError> {
        self.read_string(field, self.reader.remaining())
    }

    /// Checks that no data is left.
    ///
    /// # Errors
    ///
    /// [`OptionError::Surplus`].
    pub(crate) const fn check_end(&self) -> Result<(), OptionError> {
        match self.reader.remaining() {
            0 => Ok(()),
            bytes => {
                let (option, offset) = (self.option, self.offset());
                Err(OptionError::Surplus { option, offset, bytes })
            }
        }
    }
}
