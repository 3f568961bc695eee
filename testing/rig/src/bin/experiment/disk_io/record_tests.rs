use super::super::table::summary;
use super::*;
use crate::plan::Plan as AnyPlan;

/// Round, depth, subject, and what was done by it and natively beside it.
fn record(samples: &[(usize, u64, &str, f64, f64)]) -> Record {
    let text = include_str!("../../../../../../lab/disk-io.toml");
    let AnyPlan::DiskIo(plan) = AnyPlan::parse(text).unwrap() else { panic!() };
    let mut record = Record::new(&plan);
    for (round, depth, subject, iops, native_iops) in samples {
        record.samples.push(Sample {
            at_s: *iops / 8.0,
            round: *round,
            pattern: "database".to_owned(),
            depth: *depth,
            subject: (*subject).to_owned(),
            iops: *iops,
            native_iops: *native_iops,
        });
    }
    record.compare();
    record
}

#[test]
fn a_disk_is_compared_with_what_was_done_natively_beside_it() {
    let record = record(&[
        (0, 4, "raw over NBD", 98.0, 100.0),
        (1, 4, "raw over NBD", 198.0, 200.0),
        (2, 4, "raw over NBD", 25.0, 50.0),
        (0, 4, "pass-through over NBD", 9.0, 10.0),
    ]);
    let of = |subject: &str| {
        let found = record.comparisons.iter().find(|of| of.subject == subject);
        found.cloned().unwrap_or_else(|| panic!("{subject}"))
    };
    let raw = of("raw over NBD");
    let expected = Spread { lowest: 0.5, median: 0.98, highest: 0.99 };
    assert_eq!((raw.ratio, raw.is_goal_met), (Some(expected), Some(true)));
    assert_eq!(raw.iops, Spread { lowest: 25.0, median: 98.0, highest: 198.0 });
    let native = of("native file");
    assert_eq!((native.ratio, native.is_goal_met, native.iops.median), (None, None, 100.0));
    let through = of("pass-through over NBD");
    assert_eq!((through.ratio.unwrap().median, through.is_goal_met), (0.9, Some(false)));
    assert!(!record.comparisons.iter().any(|of| of.subject.starts_with("vhd")), "not measured");
    let summary = summary(&record);
    assert!(summary.contains("NBD: 1 of 2 medians"), "{summary}");
    assert!(summary.contains("| raw over NBD | 98 (50–99) + |"), "{summary}");
    assert!(summary.contains("engine alone: 0 of 0 medians"), "{summary}");
    // 100 times 8 KiB.
    assert!(summary.contains("| native file | 1 (0–2) |"), "{summary}");
}

#[test]
fn goals_depend_on_the_depth() {
    assert_eq!([1, 2, 4, 32].map(goal), [0.90, 0.90, 0.97, 0.97]);
    let at = |depth| {
        let record = record(&[(0, depth, "vhd-fixed over NBD", 95.0, 100.0)]);
        record.comparisons.iter().find_map(|of| of.is_goal_met)
    };
    assert_eq!([at(2), at(4)], [Some(true), Some(false)]);
}

#[test]
fn what_was_published_is_beside_what_was_measured() {
    let of = |pattern: &str, depth, subject: &str| {
        let mut record = record(&[(0, depth, subject, 95.0, 100.0)]);
        record.samples.iter_mut().for_each(|sample| sample.pattern = pattern.to_owned());
        record.compare();
        record.comparisons.iter().find(|of| of.subject == subject).unwrap().published.unwrap()
    };
    assert_eq!(of("sequential read", 2, "raw, engine alone"), 0.72);
    assert_eq!(of("sequential read", 4, "raw over vhost-user"), 1.0);
    assert_eq!(of("sequential write", 4, "pass-through over NBD"), 0.86);
    assert_eq!(of("database", 1, "vhd-fixed over NBD"), 1.0);
    let summary = summary(&record(&[]));
    let row = "| published, file VHD | at least 72 | at least 72 | native |";
    assert!(summary.contains(row), "{summary}");
}

#[test]
fn the_series_has_a_line_for_each_measurement() {
    let record = record(&[(1, 4, "raw, engine alone", 100.0, 50.0)]);
    let expected = "at_s,round,pattern,depth,subject,iops,native_iops\n\
                    12.500,1,\"database\",4,\"raw, engine alone\",100.0,50.0\n";
    assert_eq!(record.series(), expected);
}
