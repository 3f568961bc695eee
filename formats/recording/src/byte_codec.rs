//! Primitive encodings in recordings: variable-length integers and byte strings.

use crate::RecordError;

/// Maximum length of an encoded integer in bytes (LEB128, 64 bits).
const VARINT_BYTES_MAX: u32 = 10;

/// Appends an unsigned integer as LEB128.
pub(crate) fn put_unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed integer as zigzag LEB128.
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_unsigned(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends a byte string, preceded by its length as LEB128.
pub(crate) fn put_byte_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_unsigned(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Decoder of the primitive encodings, which consumes bytes from the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteDecoder<'a> {
    remaining: &'a [u8],
    read: usize,
}

impl<'a> ByteDecoder<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { remaining: bytes, read: 0 }
    }

    /// Returns the number of bytes consumed so far.
    pub(crate) const fn consumed_bytes(&self) -> usize {
        self.read
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.remaining.is_empty()
    }

    /// Consumes and returns the remaining bytes.
    pub(crate) fn take_remaining(&mut self) -> &'a [u8] {
        let rest = core::mem::take(&mut self.remaining);
        self.read += rest.len();
        rest
    }

    pub(crate) fn take_byte(&mut self) -> Result<u8, RecordError> {
        let (first, rest) = self.remaining.split_first().ok_or(RecordError::Truncated)?;
        (self.remaining, self.read) = (rest, self.read + 1);
        Ok(*first)
    }

    pub(crate) fn take_unsigned(&mut self) -> Result<u64, RecordError> {
        let mut value = 0_u64;
        for index in 0..VARINT_BYTES_MAX {
            let byte = self.take_byte()?;
            let bits = u64::from(byte & 0x7f);
            let shift = index * 7;
            if shift == 63 && bits > 1 {
                return Err(RecordError::NumberTooLarge);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(RecordError::NumberTooLarge)
    }

    /// Decodes an unsigned integer.
    ///
    /// # Errors
    ///
    /// The integer is truncated or exceeds 32 bits.
    pub(crate) fn take_u32(&mut self) -> Result<u32, RecordError> {
        u32::try_from(self.take_unsigned()?).map_err(|_| RecordError::NumberTooLarge)
    }

    pub(crate) fn take_signed(&mut self) -> Result<i64, RecordError> {
        let value = self.take_unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(crate) fn take_byte_string(&mut self) -> Result<&'a [u8], RecordError> {
        let length = usize::try_from(self.take_unsigned()?).map_err(|_| RecordError::Truncated)?;
        let (bytes, rest) =
            self.remaining.split_at_checked(length).ok_or(RecordError::Truncated)?;
        (self.remaining, self.read) = (rest, self.read + length);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decoded_as_encoded() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put_unsigned(&mut out, value);
            let mut bytes = ByteDecoder::new(&out);
            assert_eq!(bytes.take_unsigned(), Ok(value));
            assert!(bytes.is_empty() && bytes.consumed_bytes() == out.len());
        }
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            let mut out = Vec::new();
            put_signed(&mut out, value);
            assert_eq!(ByteDecoder::new(&out).take_signed(), Ok(value));
        }
    }

    #[test]
    fn invalid_and_truncated_numbers_are_rejected() {
        assert_eq!(ByteDecoder::new(&[0x80; 11]).take_unsigned(), Err(RecordError::NumberTooLarge));
        assert_eq!(ByteDecoder::new(&[0xff; 10]).take_unsigned(), Err(RecordError::NumberTooLarge));
        assert_eq!(ByteDecoder::new(&[0x80]).take_unsigned(), Err(RecordError::Truncated));
        assert_eq!(ByteDecoder::new(&[3, 1, 2]).take_byte_string(), Err(RecordError::Truncated));
        let mut encoded = Vec::new();
        put_unsigned(&mut encoded, u64::MAX);
        assert_eq!(ByteDecoder::new(&encoded).take_byte_string(), Err(RecordError::Truncated));
        assert_eq!(ByteDecoder::new(&encoded).take_u32(), Err(RecordError::NumberTooLarge));
    }
}
