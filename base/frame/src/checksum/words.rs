//! Vectorized sum of a buffer's 16-bit words.
//!
//! Two implementations with identical results: one that the compiler vectorizes for the baseline of
//! the architecture, and one for AVX2 on x86-64. The CPU's features are detected once.

/// Bytes added per iteration of a loop.
const STEP_BYTES: usize = 64;
/// Minimum length in bytes for which the setup of the AVX2 loop pays off.
#[cfg(target_arch = "x86_64")]
const AVX2_BYTES_MIN: usize = 256;

/// Returns the sum of the 16-bit words of `bytes` in native byte order, without folding carries:
/// less than 2^48 for every possible slice.
#[inline]
pub(super) fn sum_native(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= AVX2_BYTES_MIN {
        if let Some(avx2) = pulp::x86::V3::try_new() {
            return avx2.vectorize(|| sum_products(avx2, bytes));
        }
    }
    sum_pairs(bytes)
}

/// Adds 32-bit words to independent 64-bit lanes, which the compiler keeps in vector registers. A
/// lane cannot overflow before 2^32 words.
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

/// Adds pairs of 16-bit words to 32-bit lanes with `vpmaddwd`, which multiplies words and adds
/// adjacent products in one instruction; widening each word would take two. The products are
/// signed, so 2^15 is subtracted from each word first and added back at the end. Inlined in order
/// to be compiled for the caller's instruction set.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sum_products(avx2: pulp::x86::V3, bytes: &[u8]) -> u64 {
    use core::arch::x86_64::__m256i;

    const VECTOR_BYTES: usize = 32;
    /// Bytes per block, so that no lane overflows: a pair is at most 2^16.
    const BLOCK_BYTES: usize = STEP_BYTES * 0x4000;
    let pulp::x86::V3 { avx, avx2, .. } = avx2;
    let (steps, tail) = bytes.split_at(bytes.len() - bytes.len() % STEP_BYTES);
    // Flipping the highest bit subtracts 2^15 from the signed word.
    let flip = avx._mm256_set1_epi16(i16::MIN);
    let ones = avx._mm256_set1_epi16(1);
    let mut sum = 0_i64;
    for block in steps.chunks(BLOCK_BYTES) {
        let mut lanes = [avx._mm256_setzero_si256(); STEP_BYTES / VECTOR_BYTES];
        for step in block.chunks_exact(STEP_BYTES) {
            for (lane, words) in lanes.iter_mut().zip(step.chunks_exact(VECTOR_BYTES)) {
                let words: [u8; VECTOR_BYTES] = words.first_chunk().copied().unwrap_or_default();
                let words: __m256i = pulp::cast(words);
                let pairs = avx2._mm256_madd_epi16(avx2._mm256_xor_si256(words, flip), ones);
                *lane = avx2._mm256_add_epi32(*lane, pairs);
            }
        }
        for lane in lanes {
            let lane: [i32; VECTOR_BYTES / 4] = pulp::cast(lane);
            sum += lane.into_iter().map(i64::from).sum::<i64>();
        }
    }
    // Not negative: the amount subtracted from the words is added back.
    (steps.len() as u64 / 2 * 0x8000).wrapping_add_signed(sum) + sum_tail(tail)
}

/// Returns the sum of fewer bytes than one iteration processes.
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

    /// Returns the results of both loops, independent of the CPU's length threshold; of the
    /// baseline loop twice without AVX2.
    fn both(bytes: &[u8]) -> [u64; 2] {
        let pairs = folded(sum_pairs(bytes));
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = pulp::x86::V3::try_new() {
            return [pairs, folded(avx2.vectorize(|| sum_products(avx2, bytes)))];
        }
        [pairs, pairs]
    }

    #[test]
    fn no_lane_overflows_in_a_large_buffer() {
        // Extreme values, signed and unsigned.
        for word in [0xffff_u16, 0x7fff, 0x8000, 0] {
            let mut bytes = word.to_ne_bytes().repeat(2_500_000);
            bytes.push(0xff);
            let last = u64::from(u16::from_ne_bytes([0xff, 0]));
            let expected = folded(u64::from(word) * 2_500_000 + last);
            assert_eq!(both(&bytes), [expected; 2], "{word:#x}");
            assert_eq!(folded(sum_native(&bytes)), expected, "{word:#x}");
        }
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
