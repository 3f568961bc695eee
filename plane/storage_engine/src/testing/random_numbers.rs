//! Deterministic pseudo-random numbers.

/// Generator of deterministic pseudo-random numbers (SplitMix64).
pub struct RandomNumbers(pub u64);

impl RandomNumbers {
    /// Returns the next number, which is less than `end`, or 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators" (2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }
}
