//! Tests of the map of changed regions.

use std::collections::BTreeSet;

use proptest::prelude::*;
use suimon_image::ByteRange;

use crate::disk::dirty_map::DirtyMap;

const KIB: u64 = 1 << 10;
const TIB: u64 = 1 << 40;

#[test]
fn a_map_of_the_largest_disk_is_small() {
    for (size, region) in [(0, 64 * KIB), (1, 64 * KIB), (4 * TIB, 64 * KIB), (64 * TIB, 1 << 20)] {
        let map = DirtyMap::new(size);
        assert_eq!(
            (map.region_bytes(), map.region_count()),
            (region, size.div_ceil(region)),
            "{size}"
        );
    }
    assert_eq!(DirtyMap::new(64 * TIB).region_count(), 1 << 26);
}

proptest! {
    /// Compares a map with a set of regions.
    #[test]
    fn only_changed_regions_are_marked(
        size in 1..(300 * 64 * KIB),
        steps in prop::collection::vec((any::<bool>(), 0..(310 * 64 * KIB), 0..(200 * 64 * KIB)), 1..60),
    ) {
        let map = DirtyMap::new(size);
        let mut wanted = BTreeSet::new();
        for (marks, offset, len) in steps {
            if marks {
                map.mark(ByteRange::new(offset, len).unwrap());
                let end = (offset + len).min(size);
                wanted.extend((offset..end).step_by(512).map(|at| at / map.region_bytes()));
                if offset < end {
                    wanted.insert((end - 1) / map.region_bytes());
                }
            } else {
                let region = offset / map.region_bytes();
                prop_assert_eq!(map.clear(region), wanted.remove(&region));
            }
            let mut found = BTreeSet::new();
            let mut from = 0;
            while let Some(region) = map.next_marked(from) {
                found.insert(region);
                from = region + 1;
            }
            prop_assert_eq!(&found, &wanted);
            prop_assert_eq!(map.marked_region_count(), wanted.len() as u64);
            prop_assert!((0..map.region_count()).all(|at| map.is_marked(at) == wanted.contains(&at)));
        }
    }
}
