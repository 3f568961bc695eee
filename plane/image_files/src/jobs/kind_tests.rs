//! Jobs on images for which only the image records the kind and the parent.

use super::tests::{BASE, Bench, CHILD, compact, merge, model};
use super::{resize, snapshot};
use crate::open_tests::{name, seeded};
use crate::{DiskFormat, DiskKind, DiskPlan};

const MB: usize = super::tests::MB;

#[test]
fn jobs_read_kind_and_parent_from_the_image() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let (bench, top) = Bench::with_child(format);
        let top = DiskPlan { kind: None, parent: None, size_bytes: None, block_bytes: None, ..top };
        let content = model(&[&BASE, &CHILD], 3 * MB);
        compact(&bench, &top).unwrap();
        assert_eq!(bench.read(&top), content);
        let child = name(&format!("over.{}", format.as_str()));
        let snapshot_plan =
            seeded(300, |seeds| snapshot(&bench.files, &top, child, seeds)).unwrap();
        let snapshot_plan = DiskPlan { kind: None, parent: None, ..snapshot_plan };
        assert_eq!(bench.read(&snapshot_plan), content);
        for plan in [&snapshot_plan, &top] {
            merge(&bench, plan).unwrap();
            bench.files.remove(plan.file.as_ref().unwrap()).unwrap();
        }
        let base = name(&format!("base.{}", format.as_str()));
        let base = DiskPlan { file: Some(base), ..top };
        assert_eq!(bench.read(&base), content);
        // A disk without a parent is not merged, and is not assumed to be fixed.
        let error = merge(&bench, &base).unwrap_err().to_string();
        assert!(error.contains("only a disk with a parent"), "{error}");
        compact(&bench, &base).unwrap();
        let size = 5 * MB as u64;
        let grown = seeded(400, |seeds| resize(bench.files.as_ref(), &base, size, seeds));
        assert_eq!(grown.unwrap(), size);
        let fixed = DiskPlan {
            kind: Some(DiskKind::Fixed),
            file: Some(name("fixed")),
            size_bytes: Some(MB as u64),
            ..base.clone()
        };
        bench.make(&fixed, 500);
        let error = compact(&bench, &DiskPlan { kind: None, ..fixed }).unwrap_err().to_string();
        assert!(error.contains("all space of a fixed disk is allocated"), "{error}");
    }
}
