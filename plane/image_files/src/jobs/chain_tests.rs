//! Disks with many layers.

use super::tests::{Bench, CHILD, MB, convert, merge, model};
use crate::open_tests::{child, name, plan, seeded};
use crate::{DiskFault, DiskFormat, DiskKind, DiskPlan, LAYERS_MAX, open};

#[test]
fn a_chain_ends_where_a_disk_would_not_open_and_a_longer_one_is_merged() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let bench = Bench::new();
        let mut top = plan(format, DiskKind::Dynamic, "0");
        bench.make(&top, 1);
        let snapshot = |disk_plan: &DiskPlan, child: &str, nth: usize| {
            seeded(nth as u128 * 100, |seeds| {
                super::snapshot(&bench.files, disk_plan, name(child), seeds)
            })
        };
        for nth in 1..LAYERS_MAX {
            top = snapshot(&top, &nth.to_string(), nth).unwrap();
        }
        let error = snapshot(&top, "more", 70).unwrap_err();
        assert!(
            matches!(*error.fault, DiskFault::LayerLimitReached { max: LAYERS_MAX }),
            "{error}"
        );
        assert!(!bench.store.files().contains_key(&name("more")), "{format:?}");
        bench.fill(&top, &CHILD);
        // A disk that was extended by another program.
        let longer = child(format, "longer", top.file.as_ref().unwrap().as_str());
        bench.make(&longer, 9000);
        let opened = seeded(1, |seeds| open(bench.files.as_ref(), &longer, seeds));
        assert!(opened.err().unwrap().to_string().contains("suimon disk merge"));
        let raw = plan(DiskFormat::Raw, DiskKind::Fixed, "raw");
        convert(&bench, &longer, &raw).unwrap();
        assert_eq!(bench.read(&raw), model(&[&CHILD], 3 * MB), "{format:?}");
        merge(&bench, &longer).unwrap();
        assert_eq!(bench.read(&top), model(&[&CHILD], 3 * MB), "{format:?}");
    }
}
