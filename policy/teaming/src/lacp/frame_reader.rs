//! Access to the fields of a slow protocol frame by offset. Field names are used in errors.

use super::error::PduError;

/// Subtype of LACP (IEEE 802.3, Table 57A-3).
pub(crate) const SUBTYPE_LACP: u8 = 1;
/// Subtype of the Marker protocol (IEEE 802.3, Table 57A-3).
pub(crate) const SUBTYPE_MARKER: u8 = 2;

/// Frame whose fields are read by offset and name.
pub(crate) struct FrameReader<'a>(pub(crate) &'a [u8]);

impl FrameReader<'_> {
    fn truncated(&self, offset: usize, field: &'static str) -> PduError {
        PduError::Truncated { field, offset, bytes: self.0.len() }
    }

    /// Returns the `N` octets of `field` at `offset`.
    ///
    /// # Errors
    ///
    /// [`PduError::Truncated`] with the name of the field.
    pub(crate) fn read_array<const N: usize>(
        &self,
        offset: usize,
        field: &'static str,
    ) -> Result<[u8; N], PduError> {
        let octets = self.0.get(offset..).and_then(|rest| rest.first_chunk());
        octets.copied().ok_or_else(|| self.truncated(offset, field))
    }

    pub(crate) fn read_octet(&self, offset: usize, field: &'static str) -> Result<u8, PduError> {
        self.read_array(offset, field).map(|[octet]| octet)
    }

    /// Checks that the frame extends to offset `end`; `field` names the octets before it.
    ///
    /// # Errors
    ///
    /// [`PduError::Truncated`] with the name of the field.
    pub(crate) fn check_extends_to(
        &self,
        end: usize,
        offset: usize,
        field: &'static str,
    ) -> Result<(), PduError> {
        if self.0.len() < end { Err(self.truncated(offset, field)) } else { Ok(()) }
    }

    pub(crate) fn check_tlv_length(
        &self,
        offset: usize,
        field: &'static str,
        expected: u8,
    ) -> Result<(), PduError> {
        let found = self.read_octet(offset, field)?;
        if found == expected {
            return Ok(());
        }
        Err(PduError::TlvLength { field, offset, found, expected })
    }

    pub(crate) fn check_tlv_type(
        &self,
        offset: usize,
        field: &'static str,
        expected: u8,
    ) -> Result<(), PduError> {
        let found = self.read_octet(offset, field)?;
        if found == expected {
            return Ok(());
        }
        Err(PduError::TlvType { field, offset, found, expected })
    }

    /// Checks that all octets from offset `start` up to, excluding, `end` are zero.
    ///
    /// # Errors
    ///
    /// [`PduError::Reserved`] with the first non-zero octet.
    pub(crate) fn check_zero(
        &self,
        start: usize,
        end: usize,
        field: &'static str,
    ) -> Result<(), PduError> {
        let octets = self.0.get(start..end).ok_or_else(|| self.truncated(start, field))?;
        match octets.iter().position(|octet| *octet != 0) {
            Some(index) => Err(PduError::Reserved { field, offset: start + index }),
            None => Ok(()),
        }
    }
}
