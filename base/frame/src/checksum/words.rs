//! Adding up the words of a buffer, as fast as the CPU at hand can.
//!
//! Two loops that the compiler turns into vector instructions: one for what every
//! CPU of the architecture has, one for AVX2, which x86-64 CPUs may have. Which of
//! the two runs is asked of the CPU once; their results are the same.

/// Bytes summed in one step of a loop.
const STEP_BYTES: usize = 64;
/// From here on the wider loop's preparation pays.
#[cfg(target_arch = "x86_64")]
const AVX2_BYTES_MIN: usize = 256;

/// The sum of the 16-bit words of `bytes` in the machine's byte order, with carries
/// not yet folded back: less than 2^48 for every slice that there can be memory for.
#[inline]
pub(super) fn sum_native(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= AVX2_BYTES_MIN {
        if let Some(avx2) = pulp::x86::V3::try_new() {
            return avx2.vectorize(|| sum_words(bytes));
        }
    }
    sum_pairs(bytes)
}

/// Adds 32-bit words to 64-bit lanes. The lanes are independent, so that the
/// compiler keeps them in vector registers; none can overflow before 2^32 words.
#[inline]
fn sum_pairs(bytes: &[u8]) -> u64 {
    let mut lanes = [0_u64; STEP_BYTES / 8];
    let mut rest = bytes;
    while let Some((chunk, tail)) = rest.split_first_chunk::<STEP_BYTES>() {
        for (lane, pair) in lanes.iter_mut().zip(chunk.chunks_exact(8)) {
            let pair = u64::from_ne_bytes(pair.first_chunk().copied().unwrap_or_default());
            *lane += (pair & 0xffff_ffff) + (pair >> 32);
        }
        rest = tail;
    }
    lanes.iter().map(|lane| (lane & 0xffff_ffff) + (lane >> 32)).sum::<u64>() + sum_tail(rest)
}

/// Adds 16-bit words to 32-bit lanes, which AVX2 does with a widening load and an
/// addition. Inlined, because it is compiled for the instructions of its caller.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sum_words(bytes: &[u8]) -> u64 {
    /// So many words that no lane overflows.
    const BLOCK_BYTES: usize = STEP_BYTES * 0x8000;
    let (steps, tail) = bytes.split_at(bytes.len() - bytes.len() % STEP_BYTES);
    let mut sum = sum_tail(tail);
    for block in steps.chunks(BLOCK_BYTES) {
        let mut lanes = [0_u32; STEP_BYTES / 2];
        for step in block.chunks_exact(STEP_BYTES) {
            for (lane, word) in lanes.iter_mut().zip(step.chunks_exact(2)) {
                let word = word.first_chunk().copied().unwrap_or_default();
                *lane += u32::from(u16::from_ne_bytes(word));
            }
        }
        sum += lanes.iter().map(|lane| u64::from(*lane)).sum::<u64>();
    }
    sum
}

/// The sum of fewer bytes than a step has.
#[inline(always)]
fn sum_tail(bytes: &[u8]) -> u64 {
    let mut sum = 0;
    let mut rest = bytes;
    while let Some((word, tail)) = rest.split_first_chunk::<4>() {
        sum += u64::from(u32::from_ne_bytes(*word));
        rest = tail;
    }
    if let Some((word, tail)) = rest.split_first_chunk::<2>() {
        sum += u64::from(u16::from_ne_bytes(*word));
        rest = tail;
    }
    if let Some(last) = rest.first() {
        sum += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn folded(mut sum: u64) -> u64 {
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    }

    /// Both loops, whatever this CPU would choose.
    fn both(bytes: &[u8]) -> [u64; 2] {
        let pairs = folded(sum_pairs(bytes));
        #[cfg(target_arch = "x86_64")]
        return [pairs, folded(sum_words(bytes))];
        #[cfg(not(target_arch = "x86_64"))]
        [pairs, pairs]
    }

    #[test]
    fn no_lane_overflows_in_a_large_buffer() {
        // All ones are the largest words; their sum is a multiple of 0xffff.
        let ones = vec![0xff; 5_000_001];
        let last = u64::from(u16::from_ne_bytes([0xff, 0]));
        let expected = folded(0xffff * 2_500_000 + last);
        assert_eq!(both(&ones), [expected; 2]);
        assert_eq!(folded(sum_native(&ones)), expected);
    }

    proptest! {
        #[test]
        fn the_loops_agree_at_any_length_and_alignment(
            bytes in prop::collection::vec(any::<u8>(), 0..1000),
            skip in 0_usize..64,
        ) {
            let bytes = bytes.get(skip..).unwrap_or_default();
            let words = bytes.chunks(2).map(|word| match word {
                [a, b] => u64::from(u16::from_ne_bytes([*a, *b])),
                [a] => u64::from(u16::from_ne_bytes([*a, 0])),
                _ => 0,
            });
            let expected = folded(words.sum());
            prop_assert_eq!(both(bytes), [expected; 2]);
            prop_assert_eq!(folded(sum_native(bytes)), expected);
        }
    }
}
