//! Reproducible random numbers.
//!
//! The generator is xoshiro256** by Blackman and Vigna ("Scrambled linear pseudorandom number
//! generators", ACM TOMS 47, 2021), with its state initialized by SplitMix64 as they recommend. It
//! passes statistical tests and needs four words of state. It is implemented here so that no
//! library update changes the numbers: a seed that revealed a fault stays valid.

/// Stream of reproducible random numbers.
#[derive(Clone, Debug)]
pub struct RandomStream {
    state: [u64; 4],
}

impl RandomStream {
    /// Returns the stream with this name of the run with this seed. Streams with different names
    /// are independent of each other.
    pub fn new(seed: u64, stream: &str) -> Self {
        // FNV-1a of the name, so that the stream depends on nothing else.
        let name = stream.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut seed = seed ^ name.rotate_left(17);
        let mut state = [0; 4];
        for state_word in &mut state {
            *state_word = split_mix(&mut seed);
        }
        Self { state }
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Returns a uniformly distributed number below `bound`; 0 if the bound is 0.
    pub fn draw_below(&mut self, bound: u64) -> u64 {
        // The upper half of the product has a bias of less than bound in 2^64.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a uniformly distributed number from `low` to `high`, both inclusive.
    pub fn draw_in_range(&mut self, low: u64, high: u64) -> u64 {
        low + self.draw_below(high.saturating_sub(low).saturating_add(1))
    }

    /// Returns true with a probability of `of_hundred` percent.
    pub fn draw_chance(&mut self, of_hundred: u32) -> bool {
        self.draw_below(100) < u64::from(of_hundred)
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values of SplitMix64 with seed 1234567 (Vigna's `splitmix64.c`), and of
    /// xoshiro256** with the state 1, 2, 3, 4.
    #[test]
    fn numbers_equal_the_reference_values() {
        let mut seed = 1_234_567;
        assert_eq!(split_mix(&mut seed), 6_457_827_717_110_365_317);
        assert_eq!(split_mix(&mut seed), 3_203_168_211_198_807_973);
        let mut random = RandomStream { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| random.bits()).collect();
        assert_eq!(first, [11_520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
    }

    #[test]
    fn streams_differ_and_repeat() {
        let numbers_of = |seed, name| {
            let mut random = RandomStream::new(seed, name);
            (0..4).map(|_| random.bits()).collect::<Vec<_>>()
        };
        assert_eq!(numbers_of(7, "array"), numbers_of(7, "array"));
        assert_ne!(numbers_of(7, "array"), numbers_of(7, "faults"));
        assert_ne!(numbers_of(7, "array"), numbers_of(8, "array"));
    }

    #[test]
    fn numbers_are_spread_evenly_within_their_bounds() {
        let mut random = RandomStream::new(1, "spread");
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[random.draw_below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 400), "{counts:?}");
        assert_eq!(random.draw_below(0), 0);
        assert!((0..1000).all(|_| (3..=5).contains(&random.draw_in_range(3, 5))));
    }
}
