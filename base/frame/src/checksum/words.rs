//! Adding up the words of a buffer, as fast as the CPU at hand can.
//!
//! Two loops: one that the compiler turns into vector instructions of what every CPU of
//! the architecture has, and one for AVX2, which x86-64 CPUs may have. Which of the two
//! runs is asked of the CPU once; their results are the same.

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
            return avx2.vectorize(|| sum_products(avx2, bytes));
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

/// Adds pairs of 16-bit words to 32-bit lanes: AVX2 multiplies words and adds the
/// products of two neighbours in one instruction, where widening each word would take
/// two of them. The products are signed, so 2^15 is taken from each word before and
/// added for all of them at the end. Inlined, because it is compiled for the
/// instructions of its caller.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sum_products(avx2: pulp::x86::V3, bytes: &[u8]) -> u64 {
    use core::arch::x86_64::__m256i;

    const VECTOR_BYTES: usize = 32;
    /// So many words that no lane overflows: a pair is at most 2^16.
    const BLOCK_BYTES: usize = STEP_BYTES * 0x4000;
    let pulp::x86::V3 { avx, avx2, .. } = avx2;
    let (steps, tail) = bytes.split_at(bytes.len() - bytes.len() % STEP_BYTES);
    // The flipped highest bit is 2^15 less in a signed word.
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
    // Not less than nothing: what was taken from the words is added again.
    (steps.len() as u64 / 2 * 0x8000).wrapping_add_signed(sum) + sum_tail(tail)
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

    /// Both loops, also where this CPU would choose the other; the first twice if it has
    /// no AVX2.
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
        // The largest and the smallest words there are, signed and unsigned.
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
