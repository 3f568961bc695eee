//! Admission, wire format, segmentation and checksums: replays the fuzzing corpus with the fuzz
//! target's oracle, and checks generated realistic frames, unmodified and corrupted.

use crate::frame_oracle;
use crate::replay;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::Index;

use crate::frame_oracle::{ALLOW_ALL, Outcome, PARTIAL_SEGMENTS, PREFIX_BYTES, check};
use crate::frame_sample::Sample;

/// Environment variable that rewrites the seeds after a change to the samples.
const WRITE_SEEDS: &str = "SUIMON_WRITE_SEEDS";

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/frame")
}

/// One seed per type of frame, as starting points for the fuzzer, with the expected result.
fn seeds() -> Vec<(&'static str, Sample, Outcome)> {
    let plain = Sample::default();
    let large = Sample { segment_bytes: Some(40), ..plain.clone() };
    let customer = (0x8100, 0x6064);
    vec![
        ("tcp4-partial", plain.clone(), Outcome::Partial),
        ("udp4-partial", Sample { is_udp: true, ..plain.clone() }, Outcome::Partial),
        ("udp6-partial", Sample { is_udp: true, is_ipv6: true, ..plain }, Outcome::Partial),
        ("tcp4-large", large.clone(), Outcome::Large(3)),
        (
            "tcp4-large-tagged-ecn",
            Sample { tags: vec![customer], tcp_flags: 0x99, ..large.clone() },
            Outcome::Large(3),
        ),
        (
            "tcp4-large-options-wrapping",
            Sample {
                option_words: 10,
                identification: 0xffff,
                sequence: u32::MAX,
                ..large.clone()
            },
            Outcome::Large(3),
        ),
        (
            "tcp4-large-double-tagged",
            Sample { tags: vec![customer, (0x8100, 7)], ..large.clone() },
            Outcome::Large(3),
        ),
        (
            "tcp6-large-extensions",
            Sample {
                is_ipv6: true,
                extensions: vec![(0, 0), (60, 1), (43, 2), (51, 4)],
                ..large.clone()
            },
            Outcome::Large(3),
        ),
        ("udp4-large", Sample { is_udp: true, ..large.clone() }, Outcome::Large(3)),
        (
            "udp6-large-service-tag",
            Sample { is_udp: true, is_ipv6: true, tags: vec![(0x88a8, 1)], ..large.clone() },
            Outcome::Large(3),
        ),
        ("tcp4-fits-one-segment", Sample { segment_bytes: Some(100), ..large }, Outcome::Partial),
    ]
}

#[test]
fn the_corpus_holds_a_seed_of_each_kind() {
    for (name, sample, outcome) in seeds() {
        let input = sample.input(ALLOW_ALL);
        assert_eq!(check(&input), outcome, "{name}");
        let path = corpus().join(format!("seed-{name}"));
        if std::env::var_os(WRITE_SEEDS).is_some() {
            std::fs::write(&path, &input).unwrap();
        }
        let stored = std::fs::read(&path).unwrap_or_default();
        assert_eq!(stored, input, "{} is stale; run with {WRITE_SEEDS}=1", path.display());
    }
}

#[test]
fn corpus_passes_unmodified_and_corrupted() {
    let check = |input: &[u8]| {
        check(input);
    };
    replay::corpus_passes("frame", check);
    replay::damaged_corpus_passes("frame", check);
    replay::any_bytes_pass(check);
}

fn extensions() -> impl Strategy<Value = Vec<(u8, u8)>> {
    let kind = prop::sample::select(vec![0u8, 43, 51, 60, 135, 139, 140]);
    prop::collection::vec((kind, 0u8..6), 0..6)
}

fn sample() -> impl Strategy<Value = Sample> {
    let kinds = (any::<[bool; 2]>(), prop::collection::vec((0..2usize, any::<u16>()), 0..3));
    let headers = (0usize..=10, extensions(), 0usize..=10, any::<u8>());
    let numbers = (any::<u32>(), any::<u16>());
    let payload_bytes = prop_oneof![8 => 0usize..4000, 1 => 60_000usize..65_000];
    let payload = (payload_bytes, any::<u8>(), prop::option::of(1u16..3000));
    (kinds, headers, numbers, payload).prop_map(|(kinds, headers, numbers, payload)| {
        let ([is_ipv6, is_udp], tags) = kinds;
        let (payload_bytes, salt, segment_bytes) = payload;
        let types = [0x8100, 0x88a8];
        Sample {
            is_ipv6,
            is_udp,
            // One tag moves to the metadata; at most two more may remain in the bytes.
            tags: tags.into_iter().map(|(kind, tci)| (types[kind], tci)).collect(),
            option_words: headers.0,
            extensions: headers.1,
            tcp_option_words: headers.2,
            tcp_flags: headers.3,
            source_port: 12_345,
            sequence: numbers.0,
            identification: numbers.1,
            segment_bytes: segment_bytes.map(|bytes| bytes.max(8)),
            payload: (0..payload_bytes).map(|index| ((index * 31) >> 3) as u8 ^ salt).collect(),
        }
    })
}

/// Returns the expected result of a sample.
fn expected(sample: &Sample) -> Outcome {
    match sample.segment_bytes.map(usize::from) {
        Some(step) if sample.payload.len() > step => {
            Outcome::Large(sample.payload.len().div_ceil(step))
        }
        _ => Outcome::Partial,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Realistic frames are admitted, and each segment matches the definitions of its fields byte
    /// for byte.
    #[test]
    fn realistic_frames_are_admitted_and_segmented(sample in sample(), partial in any::<bool>()) {
        let control = ALLOW_ALL | if partial { PARTIAL_SEGMENTS } else { 0 };
        prop_assert_eq!(check(&sample.input(control)), expected(&sample));
    }

    /// Corruption anywhere in the header or the frame is rejected or harmless.
    #[test]
    fn corrupted_frames_are_rejected_or_harmless(
        sample in sample(),
        control in any::<u8>(),
        damage in prop::collection::vec((any::<Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<Index>()),
    ) {
        let mut input = sample.input(control);
        // Payload is irrelevant; corrupt the headers.
        let reach = input.len().min(PREFIX_BYTES + 160);
        for (position, value) in damage {
            input[position.index(reach)] = value;
        }
        if let Some(cut) = cut {
            input.truncate(cut.index(reach));
        }
        check(&input);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(
        input in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        check(&input);
    }

    /// The checksum equals that of a simple loop, at any alignment, and parts of any length
    /// combine.
    #[test]
    fn sums_agree_with_the_plain_loop(
        bytes in prop::collection::vec(any::<u8>(), 0..3000),
        skip in 0usize..8,
        split in any::<Index>(),
    ) {
        let bytes = bytes.get(skip..).unwrap_or_default();
        let total = suimon_frame::Sum::from_bytes(bytes);
        prop_assert_eq!(total.word(), frame_oracle::naive_sum(bytes));
        let (front, rest) = bytes.split_at(split.index(bytes.len() + 1));
        prop_assert_eq!(suimon_frame::Sum::from_bytes(front).concat(suimon_frame::Sum::from_bytes(rest)), total);
    }
}
