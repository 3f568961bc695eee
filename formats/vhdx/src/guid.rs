//! GUIDs of the format, and their text form.

use core::fmt;
use core::str::FromStr;

/// GUID in stored byte order: the first three fields are little-endian ([MS-DTYP] 2.3.4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid([u8; 16]);

impl Guid {
    /// Nil GUID, which represents no value.
    pub const NIL: Self = Self([0; 16]);

    /// Creates a GUID from its hexadecimal digits in the order of the text form.
    #[must_use]
    pub const fn new(digits: u128) -> Self {
        Self(swap_fields(digits.to_be_bytes()))
    }

    /// Creates a GUID from its stored bytes.
    #[must_use]
    pub const fn from_stored(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes in stored order.
    #[must_use]
    pub const fn to_stored_bytes(self) -> [u8; 16] {
        self.0
    }

    /// Returns true if this is the nil GUID.
    #[must_use]
    pub fn is_nil(self) -> bool {
        self == Self::NIL
    }
}

/// Converts from text order to stored order, and vice versa.
const fn swap_fields(b: [u8; 16]) -> [u8; 16] {
    [
        b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13],
        b[14], b[15],
    ]
}

impl fmt::Display for Guid {
    /// Formats the GUID in lower case, for example `2dc27766-f623-4200-9d64-115e9bfd4a08`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in swap_fields(self.0).into_iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// Error: a text is not a GUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuidError;

impl fmt::Display for GuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a GUID: 32 hexadecimal digits as 8-4-4-4-12, with or without braces")
    }
}

impl core::error::Error for GuidError {}

impl FromStr for Guid {
    type Err = GuidError;

    fn from_str(text: &str) -> Result<Self, GuidError> {
        let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let mut digits = 0_u128;
        let mut lengths = [8, 4, 4, 4, 12].into_iter();
        for group in inner.unwrap_or(text).split('-') {
            if Some(group.len()) != lengths.next() {
                return Err(GuidError);
            }
            for digit in group.chars() {
                digits = digits << 4 | u128::from(digit.to_digit(16).ok_or(GuidError)?);
            }
        }
        if lengths.next().is_some() { Err(GuidError) } else { Ok(Self::new(digits)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_is_stored_with_its_first_fields_reversed_and_read_as_written() {
        let guid = Guid::new(0x2dc2_7766_f623_4200_9d64_115e_9bfd_4a08);
        assert_eq!(guid.to_stored_bytes()[..8], [0x66, 0x77, 0xc2, 0x2d, 0x23, 0xf6, 0x00, 0x42]);
        assert_eq!(guid.to_string(), "2dc27766-f623-4200-9d64-115e9bfd4a08");
        assert_eq!(format!("{{{guid}}}").parse(), Ok(guid));
        assert_eq!(guid.to_string().to_uppercase().parse(), Ok(guid));
        assert_eq!(Guid::from_stored(guid.to_stored_bytes()), guid);
        for invalid in ["", "{", "2dc27766", "2dc27766-f623-4200-9d64-115e9bfd4a0é", "{2dc27766}"]
        {
            assert_eq!(invalid.parse::<Guid>(), Err(GuidError), "{invalid}");
        }
    }
}
