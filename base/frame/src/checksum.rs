//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

mod words;

use crate::Frame;
use crate::meta::Checksum;
use crate::octets::{put, u16_at};

/// A one's complement sum over bytes, not yet complemented.
///
/// Sums of parts combine: `Sum::of(a).then(Sum::of(b))` is `Sum::of(ab)`, where
/// `a` may have an odd number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    folded: u16,
    odd: bool,
}

impl Sum {
    /// The sum of no bytes.
    pub const ZERO: Self = Self { folded: 0, odd: false };

    /// The sum of `bytes`, taken as big-endian 16-bit words, the last one padded
    /// with zero.
    #[inline]
    pub fn of(bytes: &[u8]) -> Self {
        // The sum does not depend on byte order but for the order of the result
        // (RFC 1071, section 2B), so words are added as the machine loads them.
        let native = fold(words::sum_native(bytes));
        Self { folded: u16::from_be_bytes(native.to_ne_bytes()), odd: bytes.len() % 2 == 1 }
    }

    /// The sum of the one word `word`.
    #[inline]
    pub const fn of_word(word: u16) -> Self {
        Self { folded: word, odd: false }
    }

    /// The sum of these bytes followed by those of `next`.
    #[inline]
    #[must_use]
    pub const fn then(self, next: Self) -> Self {
        let folded = if self.odd { next.folded.swap_bytes() } else { next.folded };
        Self { folded: add(self.folded, folded), odd: self.odd != next.odd }
    }

    /// The sum with one word added at an even place.
    #[inline]
    #[must_use]
    pub const fn plus(self, word: u16) -> Self {
        Self { folded: add(self.folded, word), odd: self.odd }
    }

    /// The sum with one word taken away from an even place.
    #[inline]
    #[must_use]
    pub const fn minus(self, word: u16) -> Self {
        self.plus(!word)
    }

    /// The sum as a 16-bit word, not complemented; what a partial checksum field
    /// holds of the pseudo-header.
    #[inline]
    pub const fn word(self) -> u16 {
        self.folded
    }

    /// The checksum: the complement of the sum.
    #[inline]
    pub const fn checksum(self) -> u16 {
        !self.folded
    }

    /// The checksum for a UDP field, where 0 means that there is none and 0xffff
    /// stands for it (RFC 768).
    #[inline]
    pub const fn checksum_nonzero(self) -> u16 {
        match self.checksum() {
            0 => 0xffff,
            checksum => checksum,
        }
    }

    /// The pseudo-header of IPv4 (RFC 9293, section 3.1). `transport_bytes` is
    /// the length of transport header and payload.
    pub fn pseudo_ipv4(
        source: [u8; 4],
        destination: [u8; 4],
        protocol: u8,
        transport_bytes: u16,
    ) -> Self {
        Self::of(&source)
            .then(Self::of(&destination))
            .plus(u16::from(protocol))
            .plus(transport_bytes)
    }

    /// The pseudo-header of IPv6 (RFC 8200, section 8.1). `destination` is the
    /// final one, whatever the header says while a routing header is in use.
    pub fn pseudo_ipv6(
        source: [u8; 16],
        destination: [u8; 16],
        protocol: u8,
        transport_bytes: u32,
    ) -> Self {
        Self::of(&source)
            .then(Self::of(&destination))
            .then(Self::of(&transport_bytes.to_be_bytes()))
            .plus(u16::from(protocol))
    }
}

/// The checksum field after one word under it changed from `old_word` to
/// `new_word` (RFC 1624, equation 3).
#[inline]
pub const fn update(old_checksum: u16, old_word: u16, new_word: u16) -> u16 {
    !add(add(!old_checksum, !old_word), new_word)
}

/// Does what [`Checksum::Partial`] says, and marks the frame verified. Frames
/// with another state, and large frames, stay as they are: the latter are
/// completed segment by segment.
///
/// A result of 0 is stored as 0xffff for every protocol, as Linux does: both
/// mean the same to TCP, and to UDP 0 would mean that there is none.
pub fn complete_checksum(frame: &mut Frame) {
    let Checksum::Partial { start, offset } = frame.meta.checksum else { return };
    if frame.meta.gso.is_some() {
        return;
    }
    frame.gather();
    let start = usize::from(start);
    let field_at = start + usize::from(offset);
    let Some(summed) = frame.bytes().get(start..) else { return };
    // The field takes part in the sum: it holds the pseudo-header's.
    let checksum = Sum::of(summed).checksum_nonzero();
    if put(frame.bytes_mut(), field_at, &checksum.to_be_bytes()) {
        frame.meta.checksum = Checksum::Verified;
    }
}

/// The checksum field at `at`.
#[inline]
pub(crate) fn field(bytes: &[u8], at: usize) -> u16 {
    u16_at(bytes, at).unwrap_or_default()
}

/// Adds with end-around carry.
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
