//! Internet checksum (RFC 1071) and its incremental update (RFC 1624).

mod words;

use crate::Frame;
use crate::meta::Checksum;
use crate::octets::{put, u16_at};
use crate::tcp::TCP_CHECKSUM_AT;

/// One's complement sum over bytes, not yet complemented.
///
/// Sums can be concatenated: `Sum::from_bytes(a).concat(Sum::from_bytes(b))` equals
/// `Sum::from_bytes(ab)`, also if `a` has an odd length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    folded: u16,
    odd: bool,
}

impl Sum {
    /// Sum of zero bytes (RFC 1071).
    pub const ZERO: Self = Self { folded: 0, odd: false };

    /// Computes the sum of `bytes` as big-endian 16-bit words, the last one padded with zero.
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        // The sum is independent of byte order, except for the order of the result (RFC 1071,
        // section 2B), so words are added in native order.
        let native = fold(words::sum_native(bytes));
        Self { folded: u16::from_be_bytes(native.to_ne_bytes()), odd: bytes.len() % 2 == 1 }
    }

    /// Returns the sum of a single word.
    #[inline]
    pub const fn from_word(word: u16) -> Self {
        Self { folded: word, odd: false }
    }

    /// Returns the sum of these bytes followed by those of `next`.
    #[inline]
    #[must_use]
    pub const fn concat(self, next: Self) -> Self {
        let folded = if self.odd { next.folded.swap_bytes() } else { next.folded };
        Self { folded: add(self.folded, folded), odd: self.odd != next.odd }
    }

    /// Returns the sum with a word added at an even offset.
    #[inline]
    #[must_use]
    pub const fn add_word(self, word: u16) -> Self {
        Self { folded: add(self.folded, word), odd: self.odd }
    }

    /// Returns the sum with a word at an even offset removed.
    #[inline]
    #[must_use]
    pub const fn sub_word(self, word: u16) -> Self {
        self.add_word(!word)
    }

    /// Returns the sum as a 16-bit word, not complemented: the content of a partial checksum field.
    #[inline]
    pub const fn word(self) -> u16 {
        self.folded
    }

    /// Returns the checksum, the complement of the sum.
    #[inline]
    pub const fn checksum(self) -> u16 {
        !self.folded
    }

    /// Returns the checksum for a UDP header: 0 means no checksum there and is replaced by 0xffff
    /// (RFC 768).
    #[inline]
    pub const fn checksum_nonzero(self) -> u16 {
        match self.checksum() {
            0 => 0xffff,
            checksum => checksum,
        }
    }

    /// Returns the sum of an IPv4 pseudo-header (RFC 9293, section 3.1). `transport_bytes`: length
    /// of transport header and payload.
    pub fn pseudo_ipv4(
        source: [u8; 4],
        destination: [u8; 4],
        protocol: u8,
        transport_bytes: u16,
    ) -> Self {
        Self::from_bytes(&source)
            .concat(Self::from_bytes(&destination))
            .add_word(u16::from(protocol))
            .add_word(transport_bytes)
    }

    /// Returns the sum of an IPv6 pseudo-header (RFC 8200, section 8.1). `destination`: the final
    /// destination, which differs from the header's while a routing header is in use.
    pub fn pseudo_ipv6(
        source: [u8; 16],
        destination: [u8; 16],
        protocol: u8,
        transport_bytes: u32,
    ) -> Self {
        Self::from_bytes(&source)
            .concat(Self::from_bytes(&destination))
            .concat(Self::from_bytes(&transport_bytes.to_be_bytes()))
            .add_word(u16::from(protocol))
    }
}

/// Returns the checksum after a covered word changed from `old_word` to `new_word` (RFC 1624,
/// equation 3).
#[inline]
pub const fn update(old_checksum: u16, old_word: u16, new_word: u16) -> u16 {
    !add(add(!old_checksum, !old_word), new_word)
}

/// Completes a partial checksum and marks the frame as verified. Frames in other states are
/// unchanged, and so are large frames, which are completed segment by segment.
///
/// A result of 0 is stored as 0xffff, because UDP treats 0 as no checksum (RFC 768). TCP treats
/// both alike; its 0 is stored as such, as segmentation does, so that the frame can be merged
/// again.
pub fn complete_checksum(frame: &mut Frame) {
    let Checksum::Partial { start, offset } = frame.meta.checksum else { return };
    if frame.meta.gso.is_some() {
        return;
    }
    frame.linearize();
    let start = usize::from(start);
    let field_at = start + usize::from(offset);
    let Some(summed) = frame.bytes().get(start..) else { return };
    // The field contains the sum of the pseudo-header and is therefore included.
    let sum = Sum::from_bytes(summed);
    let is_tcp = usize::from(offset) == TCP_CHECKSUM_AT;
    let checksum = if is_tcp { sum.checksum() } else { sum.checksum_nonzero() };
    if put(frame.bytes_mut(), field_at, &checksum.to_be_bytes()) {
        frame.meta.checksum = Checksum::Verified;
    }
}

/// Returns the big-endian checksum field at `offset`; 0 if it exceeds `bytes`.
#[inline]
pub(crate) fn checksum_field(bytes: &[u8], offset: usize) -> u16 {
    u16_at(bytes, offset).unwrap_or_default()
}

/// Adds two words with end-around carry.
#[inline]
const fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + carry as u16
}

#[inline]
const fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests;
