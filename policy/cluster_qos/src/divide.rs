//! Dividing what there is.

/// Who wants some of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) wanted: u64,
    pub(crate) weight: u64,
}

/// Divides `total` by weight, so that nobody has more than it wants and what one does not want
/// is divided among the others. The sum is never above `total`, and below it only if all
/// have what they want, or by less than one for each.
pub(crate) fn divide(total: u64, claims: &[Claim]) -> Vec<u64> {
    let mut shares = vec![0; claims.len()];
    // Whoever wants the least for its weight is served first.
    let mut order: Vec<(usize, Claim)> =
        claims.iter().copied().enumerate().filter(|(_, claim)| claim.wanted > 0).collect();
    for (_, claim) in &mut order {
        claim.weight = claim.weight.max(1);
    }
    order.sort_by(|(a, left), (b, right)| {
        let left_by = u128::from(left.wanted) * u128::from(right.weight);
        let right_by = u128::from(right.wanted) * u128::from(left.weight);
        left_by.cmp(&right_by).then(a.cmp(b))
    });
    let mut weights: u128 = order.iter().map(|(_, claim)| u128::from(claim.weight)).sum();
    let mut left = u128::from(total);
    for (index, claim) in order {
        let weight = u128::from(claim.weight);
        let fair = left * weight / weights.max(1);
        let share = fair.min(u128::from(claim.wanted));
        left -= share;
        weights -= weight;
        if let Some(slot) = shares.get_mut(index) {
            *slot = u64::try_from(share).unwrap_or(u64::MAX);
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claim(wanted: u64, weight: u64) -> Claim {
        Claim { wanted, weight }
    }

    #[test]
    fn by_weight_and_no_more_than_wanted() {
        let claims = [claim(1000, 1), claim(1000, 3), claim(10, 1)];
        assert_eq!(divide(410, &claims), [100, 300, 10]);
        assert_eq!(divide(5000, &claims), [1000, 1000, 10]);
        assert_eq!(divide(0, &claims), [0, 0, 0]);
        assert_eq!(divide(9, &[]), [0_u64; 0]);
    }

    proptest! {
        #[test]
        fn nothing_is_made_and_nothing_is_lost(
            total in 0_u64..1 << 62,
            claims in prop::collection::vec((0_u64..1 << 62, 0_u64..1 << 40), 0..20),
        ) {
            let claims: Vec<_> = claims.into_iter().map(|(wanted, weight)| claim(wanted, weight)).collect();
            let shares = divide(total, &claims);
            let sum: u128 = shares.iter().map(|share| u128::from(*share)).sum();
            let wanted: u128 = claims.iter().map(|claim| u128::from(claim.wanted)).sum();
            prop_assert!(sum <= u128::from(total));
            prop_assert!(sum + claims.len() as u128 >= wanted.min(u128::from(total)));
            prop_assert!(shares.iter().zip(&claims).all(|(share, claim)| *share <= claim.wanted));
        }
    }
}
