//! Replays the coalescing fuzzing corpus with the fuzz target's oracle, and checks generated
//! batches.

use crate::replay;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::coalesce_oracle::{Joined, ORDER_BYTES, check};

/// Environment variable that rewrites the seeds after a change to the orders.
const WRITE_SEEDS: &str = "SUIMON_WRITE_SEEDS";

type Order = [u8; ORDER_BYTES];

/// Order (input of the fuzz target) for one frame: flow 0, a complete segment with its own
/// checksum.
const PLAIN: Order = [0, 0, 0, 1, 0, 0, 0, 0];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/coalesce")
}

fn order(change: impl FnOnce(&mut Order)) -> Order {
    let mut order = PLAIN;
    change(&mut order);
    order
}

/// Mergeable and unmergeable sequences: name of the seed, orders, and expected number of frames
/// merged into others.
fn seeds() -> Vec<(&'static str, Vec<Order>, usize)> {
    let of_flow = |flow| order(|order| order[0] = flow);
    let flags = |flags| order(|order| order[2] = flags);
    let sized = |size| order(|order| order[1] = size);
    let altered = |position, change| order(|order| (order[4], order[5]) = (position, change));
    let altered_v6 = |position| order(|order| (order[0], order[4], order[5]) = (2, position, 1));
    let fixed_and_fragmentable = [0x40, 0, 0, 1, 0xc0 + 20, 0x40, 0, 0];
    let to_egress = |egress| order(|order| order[7] = egress);
    vec![
        ("stream", vec![PLAIN; 32], 31),
        ("stream-v6", vec![of_flow(2); 32], 31),
        ("tagged", vec![of_flow(0x0c); 8], 7),
        ("four-flows", (0..32).map(|index| of_flow(index % 4)).collect(), 28),
        ("fixed-identification", vec![of_flow(0x41); 8], 7),
        ("no-identification-rule", vec![of_flow(0), of_flow(0x40), PLAIN, PLAIN], 2),
        ("checked-here", vec![order(|order| order[3] = 3); 8], 7),
        ("partial", vec![order(|order| order[3] = 0); 8], 7),
        ("push-ends", vec![PLAIN, flags(0xa0), PLAIN, PLAIN], 2),
        ("fin-ends", vec![PLAIN, PLAIN, flags(0xc0)], 2),
        ("cwr-begins", vec![PLAIN, flags(0xc8), PLAIN, PLAIN], 2),
        ("cwr-not-taken", vec![order(|order| (order[2], order[7]) = (0xc8, 0xe8)); 4], 0),
        ("odd-tail", vec![PLAIN, PLAIN, sized(0xd3), PLAIN], 2),
        ("large-ones", vec![sized(0xa0), sized(0xa3), PLAIN, sized(0xb2), PLAIN], 3),
        ("odd-large-one", vec![sized(0xb8), PLAIN, PLAIN, PLAIN], 2),
        ("full", vec![sized(0xa8); 5], 3),
        // IPv4 packets are limited to 65 535 bytes; a frame buffer is somewhat longer.
        ("just-fits", [vec![sized(0xa8); 4], vec![PLAIN, sized(0xc1)]].concat(), 5),
        ("too-long", [vec![sized(0xa8); 4], vec![PLAIN, sized(0xca)]].concat(), 4),
        ("other-segment-size", vec![sized(0xff), sized(0xa0)], 0),
        ("may-be-fragmented", vec![altered(0xc0 + 20, 0x40); 4], 3),
        ("identification-is-needed", vec![fixed_and_fragmentable; 4], 0),
        // Time to live, type of service, window, one option.
        ("other-ttl", vec![PLAIN, altered(0xc0 + 22, 1), PLAIN], 0),
        ("other-tos", vec![PLAIN, altered(0xc0 + 15, 3), PLAIN], 0),
        ("other-window", vec![PLAIN, altered(0xc0 + 48, 1), PLAIN], 0),
        ("other-option", vec![PLAIN, altered(0xc0 + 56, 1), PLAIN], 0),
        // IPv6: flow label, hop limit.
        ("other-label", vec![of_flow(2), altered_v6(0xc0 + 16), of_flow(2)], 0),
        ("other-hop-limit", vec![of_flow(2), altered_v6(0xc0 + 21), of_flow(2)], 0),
        ("damaged", vec![PLAIN, PLAIN, order(|o| (o[5], o[6]) = (1, 0xff)), PLAIN], 1),
        ("two-egresses", vec![PLAIN, to_egress(0xe0), PLAIN, to_egress(0xe0)], 0),
        ("apart", vec![to_egress(0xf4); 4], 0),
        ("flooded-between", vec![PLAIN, to_egress(0xff), PLAIN, PLAIN], 1),
        ("no-offloads", vec![to_egress(0xf0); 4], 0),
        ("no-v6", vec![order(|order| (order[0], order[7]) = (2, 0xec)); 4], 0),
        ("udp", vec![of_flow(0xf0); 4], 0),
        ("reset", vec![PLAIN, PLAIN, flags(0xfc), PLAIN], 1),
    ]
}

fn input(orders: &[Order]) -> Vec<u8> {
    orders.concat()
}

#[test]
fn only_mergeable_segments_are_merged() {
    for (name, orders, absorbed) in seeds() {
        let input = input(&orders);
        assert_eq!(check(&input), Joined { frames: orders.len(), absorbed }, "{name}");
        let path = corpus().join(format!("seed-{name}"));
        if std::env::var_os(WRITE_SEEDS).is_some() {
            std::fs::create_dir_all(corpus()).unwrap();
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
    replay::corpus_passes("coalesce", check);
    replay::damaged_corpus_passes("coalesce", check);
    replay::any_bytes_pass(check);
}

/// Generator of bytes that are mostly zero, so that streams are long enough to be merged.
fn choice() -> impl Strategy<Value = u8> {
    prop_oneof![12 => Just(0_u8), 1 => any::<u8>()]
}

fn likely_order() -> impl Strategy<Value = Order> {
    let rest = (choice(), choice(), 0_u8..4, choice(), any::<u8>(), choice(), choice());
    (0_u8..6, rest).prop_map(|(flow, (size, flags, state, position, change, damage, lane))| {
        let flow = if flow < 4 { flow } else { 0x3c | flow };
        [flow, size, flags, state, position, change, damage, lane]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn coalescing_then_segmentation_is_lossless(
        orders in prop::collection::vec(likely_order(), 0..36),
    ) {
        check(&input(&orders));
    }

    #[test]
    fn arbitrary_batches_are_lossless(
        orders in prop::collection::vec(any::<Order>(), 0..36),
    ) {
        check(&input(&orders));
    }
}
