use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

proptest! {
    /// The order behaves like a sorted list for any sequence of operations, and uses no more memory
    /// than was reserved.
    #[test]
    fn the_first_entry_has_the_lowest_key(
        ops in prop::collection::vec((0u32..12, prop::option::of(0u64..40), 1usize..13), 1..600),
        grows in any::<bool>(),
    ) {
        let (mut shares, mut model) = (WeightOrder::default(), BTreeMap::new());
        let mut table_len = if grows { 0 } else { 12 };
        shares.reserve(table_len as usize);
        // Keys grow like those of served flows; some are far ahead or behind.
        for (step, (id, key, count)) in ops.into_iter().enumerate() {
            if grows {
                shares.reserve(count);
                table_len = table_len.max(count as u32);
            }
            let capacity = shares.row.len();
            match key.map(|key| key + step as u64 / 2) {
                Some(key) if id < table_len => {
                    shares.set(id, key);
                    model.insert(id, key);
                }
                Some(_) => {}
                None => {
                    shares.remove(id);
                    model.remove(&id);
                }
            }
            prop_assert_eq!(shares.row.len(), capacity);
            prop_assert_eq!(shares.is_empty(), model.is_empty());
            prop_assert_eq!(shares.first().map(|first| first.key), model.values().min().copied());
            let entries: Vec<(u32, u64)> = shares.entries().map(|entry| (entry.id, entry.key)).collect();
            prop_assert_eq!(entries.len(), model.len());
            prop_assert_eq!(&entries.into_iter().collect::<BTreeMap<_, _>>(), &model);
            if let Some(first) = shares.first() {
                prop_assert_eq!(model.get(&first.id), Some(&first.key));
            }
        }
    }
}

fn shares_of(count: usize) -> WeightOrder {
    let mut shares = WeightOrder::default();
    shares.reserve(count);
    shares
}

/// Serves the flows round-robin for `rounds` rounds; `span` returns by how much the key of a flow
/// grows. Returns the largest number of entries in the ranking.
fn ranked_at_most(shares: &mut WeightOrder, rounds: u32, span: impl Fn(u32) -> u64) -> usize {
    let mut max = 0;
    for _ in 0..rounds {
        let first = shares.first().unwrap();
        shares.remove(first.id);
        shares.set(first.id, first.key + span(first.id));
        max = max.max(shares.ranked.entries().count());
    }
    max
}

#[test]
fn equal_shares_are_ordered_by_arrival() {
    let mut shares = shares_of(8);
    for id in [5, 2, 7, 0] {
        shares.set(id, 10);
    }
    let order = [5, 2, 7, 0].map(|id| {
        let first = shares.first().unwrap();
        shares.remove(first.id);
        (first.id, id)
    });
    assert!(order.iter().all(|(actual, expected)| actual == expected), "{order:?}");
    for id in 0..8 {
        shares.set(id, 20);
    }
    assert_eq!(ranked_at_most(&mut shares, 100, |_| 16), 0);
}

/// A flow with large requests is served rarely. The other flows remain in the queue.
#[test]
fn a_flow_far_behind_does_not_keep_others_out_of_the_queue() {
    let mut shares = shares_of(8);
    for id in 0..8 {
        shares.set(id, 0);
    }
    assert_eq!(ranked_at_most(&mut shares, 1000, |id| if id == 3 { 1000 } else { 16 }), 1);
}

/// If the first flow is never served by weight, gaps behind it are closed.
#[test]
fn gaps_are_closed_within_the_reserved_memory() {
    let mut shares = shares_of(3);
    shares.set(0, 1);
    let capacity = shares.row.len();
    for key in 0..1000 {
        shares.set(1, key);
        shares.set(2, key);
        shares.remove(1);
    }
    assert_eq!((shares.row.len(), shares.first().unwrap().id), (capacity, 0));
    shares.remove(0);
    assert_eq!(shares.first(), Some(Entry { key: 999, id: 2 }));
}
