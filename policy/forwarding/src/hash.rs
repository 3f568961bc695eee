//! Fixed hash of a MAC address on a VLAN of a switch.
//!
//! It is fixed because a policy uses no randomness. Neighbouring addresses, which are common on
//! hosts, spread over all buckets. An attacker can construct colliding addresses; the documentation
//! of [`crate::addresses`] states the effect.

use suimon_quantity::SwitchId;

/// Returns the salt for hashes of a switch's addresses. It is derived from the identifier, not from
/// an index, so that an address keeps its position when the tables change.
pub(crate) fn salt(switch: SwitchId) -> u64 {
    finish(u64::from(switch.0) ^ 0x9e37_79b9_7f4a_7c15)
}

/// Returns a hash of `word`: each bit of `word` and `salt` affects all bits of the result.
#[inline]
pub(crate) fn mix(word: u64, salt: u64) -> u64 {
    finish(word ^ salt)
}

/// Finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
/// 2014): a bijection in which each input bit affects all output bits.
#[inline]
const fn finish(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
