//! Generators of frames, and of chains of buffers for them. Separate from the other modules, which
//! programs without proptest use too.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use proptest::prelude::*;

/// Shape of a chain: length of the frame in bytes, positions at which header and frame are split
/// into buffers, and whether the chain is in an indirect table.
#[derive(Clone, Debug)]
pub struct ChainSpec {
    pub frame_bytes: usize,
    pub cuts: Vec<u16>,
    pub indirect: bool,
}

impl ChainSpec {
    /// Returns the lengths of the buffers, with the sum `total`.
    pub fn lens(&self, total: usize) -> Vec<u32> {
        let mut offsets: Vec<usize> =
            self.cuts.iter().map(|cut| usize::from(*cut) % total).collect();
        offsets.extend([0, total]);
        offsets.sort_unstable();
        offsets.windows(2).map(|pair| (pair[1] - pair[0]) as u32).collect()
    }
}

pub fn frame_bytes() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 14..200_usize, 2 => 1400..1600_usize, 1 => 60_000..65_600_usize]
}

pub fn chain() -> impl Strategy<Value = ChainSpec> {
    let cuts = prop_oneof![
        4 => Just(Vec::new()),
        2 => prop::collection::vec(0..32_u16, 1..3),
        1 => prop::collection::vec(any::<u16>(), 1..12),
    ];
    (frame_bytes(), cuts, any::<bool>()).prop_map(|(frame_bytes, cuts, indirect)| ChainSpec {
        frame_bytes,
        cuts,
        indirect,
    })
}

/// Returns an untagged frame of `len` bytes whose contents depend on `seed`.
pub fn pattern(seed: usize, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|i| (i * 31 + seed * 7 + i / 251) as u8).collect();
    bytes[12] = 0x08;
    bytes[13] = 0x00;
    bytes
}
