//! Tests of the claims of regions.

use proptest::prelude::*;
use suimon_image::ByteRange;
use suimon_storage_engine::DirtyMap;

use super::claims::{Claim, Claims};

const REGION: u64 = 64 << 10;

proptest! {
    /// No region is copied by two threads, every marked region is copied, and the first pass ends
    /// when all regions marked at its beginning were copied.
    #[test]
    fn regions_are_copied_once_each(
        regions in 1_u64..200,
        marked in prop::collection::btree_set(0_u64..200, 0..100),
        steps in prop::collection::vec((0..4, 0_u64..200), 0..300),
    ) {
        let dirty = DirtyMap::new(regions * REGION - 512);
        let mark = |region: u64| {
            dirty.mark(ByteRange::new(region * REGION, 512).unwrap());
        };
        marked.iter().for_each(|region| mark(*region));
        let mut first: Vec<u64> = marked.into_iter().filter(|region| *region < regions).collect();
        let (mut claims, mut taken) = (Claims::default(), Vec::<Claim>::new());
        let covers = |claim: &Claim, region: u64| {
            claim.range.offset() <= region * REGION && region * REGION < claim.range.end()
        };
        // All claims are returned, all remaining regions are claimed, and those claims are
        // returned.
        let ends = [(1, 320), (0, 210), (1, 320)].into_iter();
        let ends = ends.flat_map(|(step, times)| std::iter::repeat_n((step, 0), times));
        for (step, at) in steps.into_iter().chain(ends) {
            match step {
                0 => if let Some(claim) = claims.claim_next(&dirty) {
                    prop_assert!(claim.range.end() <= dirty.size_bytes() && !claim.range.is_empty());
                    for other in &taken {
                        let is_beside = other.range.end() <= claim.range.offset()
                            || claim.range.end() <= other.range.offset();
                        prop_assert!(is_beside, "{:?} and {:?}", other, claim);
                    }
                    taken.push(claim);
                },
                1 => if !taken.is_empty() {
                    let claim = taken.swap_remove(at as usize % taken.len());
                    claims.release(&claim);
                    first.retain(|region| !covers(&claim, *region));
                },
                _ => mark(at.min(regions - 1)),
            }
            if claims.has_copied_all() {
                prop_assert_eq!(&first, &Vec::<u64>::new());
            }
            prop_assert_eq!(claims.is_empty(), taken.is_empty());
        }
        prop_assert!(claims.has_copied_all());
        prop_assert_eq!(dirty.marked_region_count(), 0);
    }
}
