//! The fixed hash of an address on a VLAN of a switch.
//!
//! Fixed, because a policy draws no randomness. Neighbouring addresses, which
//! is what hosts are full of, spread over all buckets. Somebody who wants to can
//! construct addresses that meet in one place; the tables say what that costs.

use suimon_quantity::SwitchId;

/// What tells the switches apart in a hash. Derived from the identifier, not
/// from a place in some tables, so that an address keeps its place when the
/// tables change.
pub(crate) fn salt(switch: SwitchId) -> u64 {
    finish(u64::from(switch.0) ^ 0x9e37_79b9_7f4a_7c15)
}

/// Mixes all bits of `word` into all bits of the result.
#[inline]
pub(crate) fn mix(word: u64, salt: u64) -> u64 {
    finish(word ^ salt)
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable
/// pseudorandom number generators", 2014): a bijection with full avalanche.
#[inline]
const fn finish(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
