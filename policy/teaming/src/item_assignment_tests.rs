use proptest::prelude::*;

use super::*;

const THINGS: u32 = 1024;

fn slot(number: usize) -> MemberSlot {
    MemberSlot::from_number(number as u8)
}

/// Assignment after rebalancing to members with these capacities; 0 marks an inactive member.
struct Settled {
    shares: ItemAssignment,
    weights: Weights,
    active: SlotSet,
}

impl Settled {
    fn new(items: u32, capacities: &[u32]) -> Self {
        let mut shares = ItemAssignment::default();
        shares.set_items((0..items).map(u64::from));
        let mut settled = Self { shares, weights: PerSlot::default(), active: SlotSet::default() };
        settled.settle(capacities);
        settled
    }

    fn settle(&mut self, capacities: &[u32]) {
        self.weights = PerSlot::default();
        for (index, capacity) in capacities.iter().enumerate() {
            *self.weights.at_mut(slot(index)) = *capacity;
        }
        self.active = MemberSlot::all().filter(|slot| *self.weights.at(*slot) > 0).collect();
        self.shares.rebalance(self.active, &self.weights, self.active);
    }

    fn homes(&self, items: u32) -> Vec<Option<MemberSlot>> {
        (0..items).map(|item| self.shares.assigned_member(item.into())).collect()
    }

    /// Asserts the documented bounds.
    fn assert_fair(&self, items: u32) {
        let sum: u64 = self.active.iter().map(|slot| u64::from(*self.weights.at(slot))).sum();
        let members = self.active.iter().count() as u64;
        for slot in self.active.iter() {
            let weight = u64::from(*self.weights.at(slot));
            let count = u64::from(self.shares.count(slot));
            let (min, max) = (u64::from(items) * weight, u64::from(items) + members - 1);
            assert!(count >= min / sum, "{count} of {items} on {weight} of {sum}");
            assert!(count * sum <= max * weight, "{count} of {items} on {weight} of {sum}");
        }
    }
}

#[test]
fn equal_members_have_equal_shares_and_unequal_ones_by_capacity() {
    for (capacities, counts) in [
        (&[1, 1][..], &[512, 512][..]),
        (&[10_000, 10_000, 10_000], &[342, 341, 341]),
        (&[40_000, 10_000], &[820, 204]),
        (&[1, 0, 1], &[512, 0, 512]),
        (&[100, 1_000_000], &[0, 1024]),
    ] {
        let settled = Settled::new(THINGS, capacities);
        let actual: Vec<u32> =
            (0..capacities.len()).map(|index| settled.shares.count(slot(index))).collect();
        assert_eq!(actual, counts, "{capacities:?}");
        settled.assert_fair(THINGS);
    }
}

#[test]
fn without_active_members_items_keep_their_members() {
    let mut settled = Settled::new(8, &[1, 1]);
    let before = settled.homes(8);
    settled.settle(&[0, 0]);
    assert_eq!(settled.homes(8), before);
    settled.settle(&[0, 1]);
    assert_eq!(settled.homes(8), vec![Some(slot(1)); 8]);
    let mut empty = Settled::new(3, &[]);
    assert_eq!(empty.homes(3), [None; 3]);
    empty.settle(&[1]);
    assert_eq!(empty.homes(3), [Some(slot(0)); 3]);
}

#[test]
fn only_receivers_gain_items() {
    let mut settled = Settled::new(12, &[1, 1, 0]);
    let receivers: SlotSet = [slot(2)].into_iter().collect();
    *settled.weights.at_mut(slot(2)) = 1;
    *settled.weights.at_mut(slot(1)) = 100;
    let active = [slot(0), slot(1), slot(2)].into_iter().collect();
    settled.shares.rebalance(active, &settled.weights, receivers);
    let counts = [0, 1, 2].map(|index| settled.shares.count(slot(index)));
    assert_eq!(counts, [3, 6, 3]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn shares_are_fair_and_a_member_moves_only_its_own(
        items in 1u32..400,
        capacities in prop::collection::vec(prop::sample::select(vec![1u32, 10, 25, 100, 400]), 2..32),
        changed in any::<prop::sample::Index>(),
    ) {
        let index = changed.index(capacities.len());
        let mut settled = Settled::new(items, &capacities);
        settled.assert_fair(items);
        let before = settled.homes(items);

        let mut without = capacities.clone();
        without[index] = 0;
        settled.settle(&without);
        settled.assert_fair(items);
        let between = settled.homes(items);
        for (before, between) in before.iter().zip(&between) {
            prop_assert!(before == between || *before == Some(slot(index)));
        }

        settled.settle(&capacities);
        settled.assert_fair(items);
        for (between, after) in between.iter().zip(&settled.homes(items)) {
            prop_assert!(between == after || *after == Some(slot(index)));
        }
    }

    #[test]
    fn any_history_ends_fair(
        items in 1u32..200,
        history in prop::collection::vec(prop::collection::vec(0u32..50, 1..8), 1..12),
    ) {
        let mut settled = Settled::new(items, &[]);
        for capacities in history {
            settled.settle(&capacities);
            settled.assert_fair(items);
        }
    }

    #[test]
    fn adding_an_item_moves_no_other_and_removing_one_moves_at_most_one(
        items in 1u32..100,
        capacities in prop::collection::vec(1u32..40, 1..8),
        removed in any::<prop::sample::Index>(),
    ) {
        let mut settled = Settled::new(items, &capacities);
        let before = settled.homes(items);
        settled.shares.set_items((0..=items).map(u64::from));
        settled.settle(&capacities);
        prop_assert_eq!(&settled.homes(items), &before);
        settled.assert_fair(items + 1);

        let before = settled.homes(items + 1);
        let removed = removed.index(items as usize + 1);
        settled.shares.set_items((0..=u64::from(items)).filter(|item| *item != removed as u64));
        settled.settle(&capacities);
        settled.assert_fair(items);
        let after = settled.homes(items + 1);
        let moved = (0..=items as usize).filter(|index| *index != removed && before[*index] != after[*index]);
        prop_assert!(moved.count() <= 1);
    }
}
