use super::*;
use crate::plan::Plan as AnyPlan;
use crate::qos_host::record::{Calibration, DiskSecond};

/// Two disks, one request of 8 KiB at a time; the second has a minimum of 100 and the
/// first a maximum of 50.
fn record(rates: &[(f64, f64)]) -> Record {
    let text = "kind = \"qos-host\"\nname = \"x\"\nfolder = \"/tmp\"\nstore_depth_max = 1\n\
                format = \"raw\"\ndisk_kind = \"fixed\"\ndisk_mib = 16\nblock_kib = 8\ndepth = 1\n\
                calibration_s = 2\ndocument_iops = 1000\n\
                group = [{ name = \"a\", disks = 1 }, { name = \"b\", disks = 1 }]\n\
                [[step]]\nname = \"s\"\nseconds = 10\npublished = [\"\", \"\"]\n\
                limits = [{ max_iops = 50 }, { min_iops = 100 }]\n";
    let AnyPlan::QosHost(plan) = AnyPlan::parse(text).unwrap() else { panic!() };
    let mut record = Record::new(&plan);
    let limits = plan.steps[0].limits.clone();
    record.steps.push(StepBegun { limits, at_s: 10.0, change_s: 0.1 });
    let second = |at_s: f64, is_change: bool, (a, b): (f64, f64)| Second {
        at_s,
        unix_ms: (at_s * 1000.0) as u64,
        span_s: 1.0,
        step: Some(0),
        is_change,
        disks: [("vm01", a), ("vm02", b)]
            .map(|(disk, got_iops)| DiskSecond {
                disk: disk.to_owned(),
                got_iops,
                ..DiskSecond::default()
            })
            .to_vec(),
    };
    // What happens while limits change is nobody's fault.
    record.seconds.push(second(10.0, true, (9999.0, 0.0)));
    let seconds = rates.iter().zip(11..).map(|(rate, at)| second(f64::from(at), false, *rate));
    record.seconds.extend(seconds);
    record
}

fn verdicts_of(rates: &[(f64, f64)]) -> (Maximum, Minimum, Vec<Verdict>) {
    let verdicts = verdicts(&record(rates));
    (verdicts[0].maximum.unwrap(), verdicts[1].minimum.unwrap(), verdicts)
}

#[test]
fn limits_that_hold() {
    let (maximum, minimum, verdicts) = verdicts_of(&[(50.0, 101.0); 8]);
    assert_eq!((maximum.held, maximum.disks), (1, 1));
    assert_eq!((maximum.mean, maximum.highest_window), (1.0, 1.0));
    let expected =
        Minimum { met: 1, disks: 1, met_after_s: Some(1.0), seconds_below: 0, seconds: 8 };
    assert_eq!(minimum, expected);
    assert_eq!(verdicts[1].got, Spread { lowest: 101.0, mean: 101.0, highest: 101.0 });
    assert_eq!((verdicts[0].minimum, verdicts[1].maximum), (None, None));
}

#[test]
fn a_minimum_that_is_met_late_or_not() {
    // After three seconds, and missed once more; on average it is met.
    let rates = [20.0, 60.0, 100.0, 100.0, 96.0, 110.0, 100.0, 100.0, 100.0, 100.0];
    let (_, minimum, _) = verdicts_of(&rates.map(|b| (1.0, b)));
    let expected =
        Minimum { met: 1, disks: 1, met_after_s: Some(3.0), seconds_below: 1, seconds: 8 };
    assert_eq!(minimum, expected);
    // The first two seconds do not count, and what is 97 after them is too little: 98 less
    // a request in six seconds are wanted.
    let (_, minimum, _) =
        verdicts_of(&[200.0, 200.0, 97.0, 97.0, 97.0, 97.0, 97.0, 97.0].map(|b| (1.0, b)));
    assert_eq!((minimum.met, minimum.met_after_s), (0, Some(1.0)));
    let (_, minimum, _) = verdicts_of(&[(1.0, 90.0); 8]);
    let never = Minimum { disks: 1, ..Minimum::default() };
    assert_eq!(minimum, never);
}

#[test]
fn a_maximum_is_judged_by_its_worst_window() {
    // 51.2 are 50, 2 %, and a request in five seconds.
    let held = [40.0, 50.0, 51.0, 52.0, 51.0, 52.0, 50.0, 40.0].map(|a| (a, 200.0));
    let (maximum, ..) = verdicts_of(&held);
    assert_eq!(maximum.held, 1);
    assert!((maximum.highest_window - 1.024).abs() < 1e-9, "{maximum:?}");
    let exceeded = [0.0, 52.0, 52.0, 52.0, 52.0, 52.0, 0.0, 0.0].map(|a| (a, 200.0));
    let (maximum, ..) = verdicts_of(&exceeded);
    assert_eq!(maximum.held, 0, "{maximum:?}");
    assert!(maximum.mean < 1.0, "{maximum:?}");
    // A step that is shorter than the window is one.
    let (maximum, ..) = verdicts_of(&[(60.0, 200.0); 3]);
    assert_eq!((maximum.held, maximum.highest_window), (0, 1.2));
    let (maximum, ..) = verdicts_of(&[]);
    assert_eq!((maximum.held, maximum.highest_window), (1, 0.0));
}

#[test]
fn what_a_store_does_scales_limits() {
    let calibration = Calibration::new(9000.0, 18_000);
    assert_eq!((calibration.measured_iops, calibration.scale), (9000, 0.5));
    let limits = Limits { min_iops: Some(3001), max_iops: None };
    let scaled = limits.scaled(calibration.scale);
    assert_eq!(scaled, Limits { min_iops: Some(1501), max_iops: None });
    assert_eq!(Limits { min_iops: Some(1), max_iops: Some(1) }.scaled(0.1).max_iops, Some(1));
}

#[test]
fn what_fio_saw_is_put_beside_the_second_that_ended_next_to_it() {
    let mut record = record(&[(50.0, 100.0); 3]);
    record.add_fio(1, &[(11_300, 8_192_000), (12_900, 819_200), (99_000, 1)]);
    let seen: Vec<Option<f64>> = record.seconds.iter().map(|of| of.disks[1].fio_iops).collect();
    assert_eq!(seen, [None, Some(1000.0), None, Some(100.0)]);
    assert_eq!(record.seconds[1].disks[0].fio_iops, None);
    assert_eq!(verdicts(&record)[1].fio_mean, Some(100.0));
}
