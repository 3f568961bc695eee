use proptest::prelude::*;

use super::*;

fn slot(number: usize) -> MemberSlot {
    MemberSlot::from_number(number as u8)
}

/// Buckets with given loads on members with given capacities.
struct Model {
    rebalancer: Rebalancer,
    assigned: [MemberSlot; BUCKETS],
    /// Member by which the frames of each bucket leave.
    actual: [MemberSlot; BUCKETS],
    active: SlotSet,
    weights: Weights,
    moves: Vec<usize>,
}

impl Model {
    fn new(capacities: &[u32]) -> Self {
        let mut weights = Weights::default();
        for (index, capacity) in capacities.iter().enumerate() {
            *weights.at_mut(slot(index)) = *capacity;
        }
        let start = core::array::from_fn(|bucket| slot(bucket % capacities.len()));
        Self {
            rebalancer: Rebalancer::default(),
            assigned: start,
            actual: start,
            active: (0..capacities.len()).map(slot).collect(),
            weights,
            moves: Vec::new(),
        }
    }

    /// Simulates one period in which each bucket carries this number of bytes. At its end, buckets
    /// for which `pauses` returns true change to their target member.
    fn period(&mut self, bytes: &[u64], pauses: impl Fn(usize) -> bool) {
        let mut loads = [BucketLoad::default(); BUCKETS];
        for (index, load) in loads.iter_mut().enumerate() {
            *load = BucketLoad { bytes: bytes[index], member: Some(self.actual[index]) };
        }
        let before = self.assigned;
        self.rebalancer.handle_period(&loads, &mut self.assigned, self.active, &self.weights);
        self.moves = (0..BUCKETS).filter(|index| before[*index] != self.assigned[*index]).collect();
        for index in (0..BUCKETS).filter(|index| pauses(*index)) {
            self.actual[index] = self.assigned[index];
        }
    }

    /// Returns the load per capacity of the busiest member, in percent of the mean.
    fn peak(&self, bytes: &[u64]) -> u64 {
        let load = |slot| {
            let on_it = bytes.iter().zip(&self.assigned).filter(|(_, member)| **member == slot);
            on_it.map(|(bytes, _)| *bytes).sum::<u64>()
        };
        let capacity: u64 = self.active.iter().map(|slot| u64::from(*self.weights.at(slot))).sum();
        let mean = bytes.iter().sum::<u64>() / capacity;
        let loads = self.active.iter().map(|slot| load(slot) / u64::from(*self.weights.at(slot)));
        loads.max().unwrap_or_default() * 100 / mean.max(1)
    }
}

/// Returns loads of `bytes` for `buckets`, and 0 for the others.
fn loads_on(buckets: impl IntoIterator<Item = usize>, bytes: u64) -> Vec<u64> {
    let mut loads = vec![0; BUCKETS];
    for index in buckets {
        loads[index] = bytes;
    }
    loads
}

#[test]
fn load_on_one_member_is_spread_within_a_few_periods_and_then_stays() {
    for capacities in [&[1, 1][..], &[10, 10, 10, 10], &[40, 10], &[100, 25, 25, 10]] {
        let mut model = Model::new(capacities);
        let crowd = loads_on((0..BUCKETS).step_by(capacities.len()), 1_000_000);
        assert!(model.peak(&crowd) >= 125, "{capacities:?}");
        for _ in 0..16 {
            model.period(&crowd, |_| true);
        }
        assert!(model.peak(&crowd) <= 110, "{} {capacities:?}", model.peak(&crowd));
        for _ in 0..20 {
            model.period(&crowd, |_| true);
            assert!(model.moves.is_empty());
        }
    }
}

#[test]
fn large_flows_are_separated_and_a_single_one_is_not_moved() {
    let mut model = Model::new(&[1, 1]);
    let two = loads_on([0, 2], 500_000_000);
    for _ in 0..3 {
        model.period(&two, |_| true);
    }
    assert_ne!(model.assigned[0], model.assigned[2]);
    let mut model = Model::new(&[1, 1]);
    for _ in 0..20 {
        model.period(&loads_on([6], 900_000_000), |_| true);
        assert!(model.moves.is_empty());
    }
    // With small flows beside it, those move and the large flow stays.
    let mut mixed = loads_on((0..BUCKETS).step_by(2), 1_000_000);
    mixed[6] = 300_000_000;
    for _ in 0..16 {
        model.period(&mixed, |_| true);
    }
    assert_eq!(model.assigned[6], slot(0));
    assert!(model.peak(&mixed) <= 110, "{}", model.peak(&mixed));
}

#[test]
fn little_traffic_and_little_unevenness_move_nothing() {
    let mut model = Model::new(&[1, 1]);
    for _ in 0..10 {
        model.period(&loads_on((0..BUCKETS).step_by(2), 1000), |_| true);
        assert!(model.moves.is_empty());
        let mut uneven = loads_on(0..BUCKETS, 1_000_000);
        for index in (0..BUCKETS).step_by(2) {
            uneven[index] = 1_150_000;
        }
        model.period(&uneven, |_| true);
        assert!(model.moves.is_empty());
    }
}

#[test]
fn a_bucket_that_never_pauses_is_given_up_and_others_are_moved() {
    let mut model = Model::new(&[1, 1]);
    let crowd = loads_on([0, 2, 4, 6], 100_000_000);
    for _ in 0..4 {
        model.period(&crowd, |index| index == 0);
    }
    for _ in 0..40 {
        model.period(&crowd, |index| index == 0 || index == 2);
    }
    // Buckets that paused have moved; the others are targeted at their current member.
    assert_eq!([model.actual[0], model.actual[2]], [slot(1), slot(1)]);
    assert_eq!([model.assigned[4], model.assigned[6]], [slot(0), slot(0)]);
    assert_eq!(model.peak(&crowd), 100);
}

#[test]
fn extreme_loads_cause_no_failure() {
    let mut model = Model::new(&[u32::MAX, 1]);
    for _ in 0..20 {
        model.period(&vec![u64::MAX; BUCKETS], |_| true);
    }
    let mut inactive = Model::new(&[1, 1]);
    inactive.active = SlotSet::default();
    inactive.period(&vec![u64::MAX; BUCKETS], |_| true);
    assert!(inactive.moves.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A constant load reaches a stable assignment that is no worse than the initial one.
    #[test]
    fn constant_loads_reach_a_stable_assignment(
        bytes in prop::collection::vec(prop::sample::select(vec![0u64, 1000, 100_000, 10_000_000, 200_000_000]), BUCKETS),
        capacities in prop::collection::vec(prop::sample::select(vec![1u32, 10, 25, 100]), 1..8),
    ) {
        let mut model = Model::new(&capacities);
        let before = model.peak(&bytes);
        for _ in 0..120 {
            model.period(&bytes, |_| true);
        }
        prop_assert!(model.peak(&bytes) <= before.max(112));
        for _ in 0..12 {
            model.period(&bytes, |_| true);
            prop_assert!(model.moves.is_empty());
        }
    }

    /// For any load, a bucket is moved at most once in eight periods, and only to active members.
    #[test]
    fn no_load_makes_buckets_oscillate(
        series in prop::collection::vec(prop::collection::vec(0u64..300_000_000, 16), 40),
        square in any::<bool>(),
        capacities in prop::collection::vec(1u32..40, 2..5),
    ) {
        let mut model = Model::new(&capacities);
        let mut last = vec![None::<usize>; BUCKETS];
        for (period, some_loads) in series.iter().enumerate() {
            let mut bytes = vec![0; BUCKETS];
            for (index, load) in some_loads.iter().enumerate() {
                let phase = if square { (period + index) % 2 } else { 1 };
                bytes[index * 7] = load * phase as u64;
            }
            model.period(&bytes, |_| true);
            for bucket in model.moves.clone() {
                prop_assert!(last[bucket].is_none_or(|moved_period| period - moved_period >= usize::from(PINNED_PERIODS)));
                prop_assert!(model.active.contains(model.assigned[bucket]));
                last[bucket] = Some(period);
            }
        }
    }
}
