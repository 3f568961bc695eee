//! Division of a rate by weight.
//!
//! Weighted max-min division by water filling: at a *level*, each claim gets the level times its
//! weight, at most what it demands.

use serde::{Deserialize, Serialize};

/// Fractional bits of levels, so that one step is less than one operation for a total weight of up
/// to 2³².
const LEVEL_BITS: u32 = 32;

/// Demand and weight of one claim in a division.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightedDemand {
    /// Demand in normalised operations per second.
    #[serde(rename = "wanted_iops")]
    pub demand_iops: u64,
    /// Weight in the division among claims.
    pub weight: u64,
}

/// Node or other participant in a division of capacity, with its claims and bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimant<'a> {
    pub(crate) claims: &'a [WeightedDemand],
    /// Rate that the participant already has from another source and that counts towards its
    /// claims.
    pub(crate) other_supply_iops: u64,
    /// Lower bound of the share, even if the claims are smaller.
    pub(crate) share_min: u64,
    /// Upper bound of the share, even if the claims are larger.
    pub(crate) share_max: u64,
}

impl<'a> Claimant<'a> {
    /// Creates a claimant without other sources and bounds, whose share depends only on its claims.
    pub(crate) const fn new(claims: &'a [WeightedDemand]) -> Self {
        Self { claims, other_supply_iops: 0, share_min: 0, share_max: u64::MAX }
    }

    fn share_at_level(&self, level: u128) -> u64 {
        let share = |claim: &WeightedDemand| {
            let by_weight = level.saturating_mul(claim.weight.max(1).into()) >> LEVEL_BITS;
            u64::try_from(by_weight).unwrap_or(u64::MAX).min(claim.demand_iops)
        };
        let total = self.claims.iter().fold(0_u64, |sum, claim| sum.saturating_add(share(claim)));
        total.saturating_sub(self.other_supply_iops).min(self.share_max).max(self.share_min)
    }
}

/// Divides `total` among the claimants by weight and returns their shares in the same order. No
/// claimant gets more than it demands, and the unused part is divided among the others. The sum
/// never exceeds `total` and is less only if every demand is satisfied.
pub(crate) fn divide(total: u64, claimants: &[Claimant<'_>]) -> Vec<u64> {
    let is_affordable = |level: u128| {
        let sum = claimants
            .iter()
            .map(|claimant| u128::from(claimant.share_at_level(level)))
            .sum::<u128>();
        sum <= u128::from(total)
    };
    // Level at which every demand is satisfied, or one claimant has the total.
    let max_held =
        claimants.iter().map(|claimant| claimant.other_supply_iops).max().unwrap_or_default();
    let top = (u128::from(total) + u128::from(max_held) + 1) << LEVEL_BITS;
    let (mut low, mut high) = (0, top);
    while low < high {
        let middle = high - (high - low) / 2;
        if is_affordable(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    let mut remaining = total;
    let mut shares: Vec<u64> = claimants
        .iter()
        .map(|claimant| {
            let share = claimant.share_at_level(low).min(remaining);
            remaining -= share;
            share
        })
        .collect();
    // The next level exceeds the total for all claimants together, but not for the first ones.
    for (share, claimant) in shares.iter_mut().zip(claimants) {
        let extra = claimant.share_at_level(low + 1).saturating_sub(*share).min(remaining);
        *share += extra;
        remaining -= extra;
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn claim(demand_iops: u64, weight: u64) -> WeightedDemand {
        WeightedDemand { demand_iops, weight }
    }

    fn shares(total: u64, claims: &[WeightedDemand]) -> Vec<u64> {
        let claimants: Vec<_> =
            claims.iter().map(|claim| Claimant::new(std::slice::from_ref(claim))).collect();
        divide(total, &claimants)
    }

    #[test]
    fn division_is_by_weight_and_at_most_the_demand() {
        let claims = [claim(1000, 1), claim(1000, 3), claim(10, 1)];
        assert_eq!(shares(410, &claims), [100, 300, 10]);
        assert_eq!(shares(5000, &claims), [1000, 1000, 10]);
        assert_eq!(shares(0, &claims), [0, 0, 0]);
        assert_eq!(shares(9, &[]), [0_u64; 0]);
        assert_eq!(shares(10, &[claim(9, 1), claim(9, 1), claim(9, 1)]), [4, 3, 3]);
    }

    #[test]
    fn a_small_demand_with_a_large_weight_gets_only_its_demand() {
        let [first, second] = [[claim(1 << 60, 100), claim(50, 5000)], [claim(1 << 60, 25); 2]];
        let claimants =
            [Claimant::new(&first), Claimant { other_supply_iops: 20, ..Claimant::new(&second) }];
        // 1 × 100 + 50 beside 2 × 25 − 20, at a level of 1.
        assert_eq!(divide(180, &claimants), [150, 30]);
        let with_minimum = [claimants[0], Claimant { share_min: 100, ..claimants[1] }];
        assert_eq!(divide(180, &with_minimum), [80, 100]);
        let capped = [Claimant { share_max: 10, ..claimants[0] }, claimants[1]];
        assert_eq!(divide(180, &capped), [10, 170]);
        assert_eq!(divide(60, &with_minimum), [0, 60], "there is no more");
    }

    proptest! {
        #[test]
        fn the_sum_of_shares_is_the_demand_or_the_total(
            total in 0_u64..1 << 62,
            claims in prop::collection::vec((0_u64..1 << 58, 0_u64..1 << 40), 0..20),
            pairs in prop::collection::vec((0_u64..1 << 40, any::<bool>()), 10),
        ) {
            let claims: Vec<_> = claims.into_iter().map(|(demand, weight)| claim(demand, weight)).collect();
            let claimants: Vec<_> = claims.chunks(2).zip(&pairs)
                .map(|(claims, (assigned, is_open))| Claimant { other_supply_iops: if *is_open { 0 } else { *assigned }, ..Claimant::new(claims) })
                .collect();
            let shares = divide(total, &claimants);
            let sum: u128 = shares.iter().map(|share| u128::from(*share)).sum();
            let demand_of = |claimant: &Claimant<'_>| {
                let demand_sum: u64 = claimant.claims.iter().map(|claim| claim.demand_iops).sum();
                demand_sum.saturating_sub(claimant.other_supply_iops)
            };
            let demand_sum: u128 = claimants.iter().map(|claimant| u128::from(demand_of(claimant))).sum();
            prop_assert_eq!(sum, demand_sum.min(u128::from(total)));
            prop_assert!(shares.iter().zip(&claimants).all(|(share, claimant)| *share <= demand_of(claimant)));
        }
    }
}
