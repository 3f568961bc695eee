use proptest::prelude::*;

use super::*;
use crate::FrameMeta;

#[test]
fn the_example_of_rfc_1071_comes_out() {
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(Sum::from_bytes(&bytes).word(), 0xddf2);
    assert_eq!(Sum::from_bytes(&bytes).checksum(), 0x220d);
    assert_eq!(Sum::from_bytes(&[]), Sum::ZERO);
}

#[test]
fn the_example_of_rfc_1624_comes_out() {
    assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
}

#[test]
fn sums_do_not_overflow_in_the_largest_frame() {
    let ones = vec![0xff; crate::FRAME_BYTES_MAX];
    assert_eq!(Sum::from_bytes(&ones).word(), 0xffff);
    assert_eq!(Sum::from_bytes(&ones).checksum_nonzero(), 0xffff);
}

#[test]
fn pseudo_headers_are_their_bytes() {
    let v4 = Sum::pseudo_ipv4([10, 0, 0, 1], [10, 0, 0, 2], 6, 0x1234);
    assert_eq!(v4, Sum::from_bytes(&[10, 0, 0, 1, 10, 0, 0, 2, 0, 6, 0x12, 0x34]));
    let source = core::array::from_fn(|index| index as u8);
    let destination = core::array::from_fn(|index| 0xf0 | index as u8);
    let v6 = Sum::pseudo_ipv6(source, destination, 17, 0x0001_0203);
    let bytes = [&source[..], &destination, &[0, 1, 2, 3, 0, 0, 0, 17]].concat();
    assert_eq!(v6, Sum::from_bytes(&bytes));
}

#[test]
fn a_checksum_of_zero_is_stored_as_ones_except_in_tcp() {
    for (offset, expected) in [(6, 0xffff), (16, 0)] {
        let mut frame = Frame::new(0);
        let mut bytes = vec![0; 54];
        // The words from 34 on add up to 0xffff.
        bytes[34..38].copy_from_slice(&[0xff, 0x00, 0x00, 0xff]);
        frame.set_bytes(&bytes);
        frame.meta.checksum = Checksum::Partial { start: 34, offset };
        complete_checksum(&mut frame);
        assert_eq!(checksum_field(frame.bytes(), 34 + usize::from(offset)), expected);
        assert_eq!(frame.meta.checksum, Checksum::Verified);
    }
}

#[test]
fn only_partial_checksums_are_completed() {
    let mut frame = Frame::new(0);
    frame.set_bytes(&[7; 60]);
    for checksum in [Checksum::Unknown, Checksum::Verified] {
        frame.meta = FrameMeta { checksum, ..FrameMeta::default() };
        complete_checksum(&mut frame);
        assert_eq!((frame.bytes(), frame.meta.checksum), (&[7; 60][..], checksum));
    }
    // Metadata inconsistent with the bytes, which no source may produce: the frame must not be
    // changed.
    let outside = Checksum::Partial { start: 59, offset: 0 };
    frame.meta.checksum = outside;
    complete_checksum(&mut frame);
    assert_eq!((frame.bytes(), frame.meta.checksum), (&[7; 60][..], outside));
}

proptest! {
    /// After an update, the field still complements the sum of the words.
    #[test]
    fn an_update_equals_a_new_sum(
        mut words in prop::collection::vec(any::<u16>(), 1..40),
        position in any::<prop::sample::Index>(),
        new_word in any::<u16>(),
    ) {
        // An all-zero header is meaningless and excluded by RFC 1624.
        words.push(0x4500);
        let sum = |words: &[u16]| words.iter().fold(Sum::ZERO, |sum, word| sum.add_word(*word));
        let old_checksum = sum(&words).checksum();
        let index = position.index(words.len() - 1);
        let updated = update(old_checksum, words[index], new_word);
        words[index] = new_word;
        prop_assert_eq!(updated, sum(&words).checksum());
    }

    #[test]
    fn sub_word_reverses_add_word(start in 1u16.., word in any::<u16>()) {
        let sum = Sum::from_word(start).add_word(word).sub_word(word);
        prop_assert_eq!(sum.word(), start);
    }
}
