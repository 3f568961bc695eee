use super::*;
use crate::kinds::qos::record::{Calibration, DiskSample, StepStart};
use crate::kinds::qos::settings::Settings;

/// Returns settings with two disks and requests of 8 KiB at depth 1. The second disk has a minimum
/// of 100, the first one a maximum of 50.
fn settings() -> Settings {
    toml::from_str(
        "store_depth_max = 1\nformat = \"raw\"\ndisk_kind = \"fixed\"\ndisk_mib = 16\n\
         block_kib = 8\ndepth = 1\ncalibration_s = 2\nstep_s = 10\ndeclared_percent = 100\n\
         document_iops = 1000\n\
         group = [{ name = \"a\", disks = [\"vm01\"] }, { name = \"b\", disks = [\"vm02\"] }]\n\
         [[step]]\nchange = { en = \"s\", ja = \"s\" }\n\
         limits = [{ max_iops = 50 }, { min_iops = 100 }]\n",
    )
    .unwrap()
}

fn record<'a>(settings: &'a Settings, rates: &[(f64, f64)]) -> Record<'a> {
    let limits = settings.steps[0].limits.clone();
    let step_start = StepStart { limits, at_s: 10.0, rejection: None };
    let second = |at_s: f64, is_change: bool, (a, b): (f64, f64)| SecondSample {
        at_s,
        unix_ms: (at_s * 1000.0) as u64,
        span_s: 1.0,
        step: Some(0),
        is_changing_limits: is_change,
        disks: [a, b]
            .map(|got_iops| DiskSample { delivered_iops: got_iops, ..DiskSample::default() })
            .to_vec(),
    };
    // A second in which limits change is not evaluated.
    let mut seconds = vec![second(10.0, true, (9999.0, 0.0))];
    seconds
        .extend(rates.iter().zip(11..).map(|(rate, at_s)| second(f64::from(at_s), false, *rate)));
    let calibration = Calibration::new(1000.0, 100, 1000);
    Record { settings, calibration, steps: vec![step_start], seconds }
}

fn verdicts_of_two(rates: &[(f64, f64)]) -> (MaximumCompliance, MinimumCompliance, Vec<Verdict>) {
    let settings = settings();
    let verdicts = verdicts(&record(&settings, rates), 0, 2.0);
    (verdicts[0].maximum.unwrap(), verdicts[1].minimum.unwrap(), verdicts)
}

#[test]
fn limits_that_are_kept() {
    let (maximum, minimum, verdicts) = verdicts_of_two(&[(50.0, 101.0); 8]);
    assert_eq!((maximum.disks_within_maximum, maximum.disks), (1, 1));
    assert_eq!((maximum.mean_ratio, maximum.highest_window_ratio), (1.0, 1.0));
    let expected = MinimumCompliance {
        disks_met: 1,
        disks: 1,
        lowest_mean_ratio: 1.01,
        met_after_s: Some(1.0),
        seconds_below: 0,
        seconds_after_met: 8,
    };
    assert_eq!(minimum, expected);
    assert_eq!(verdicts[1].means, [101.0]);
    assert_eq!((verdicts[0].minimum, verdicts[1].maximum), (None, None));
}

#[test]
fn a_minimum_that_is_met_late_or_not() {
    // The disk reaches its minimum after three seconds and misses it in one later second. The mean
    // rate reaches it.
    let rates = [20.0, 60.0, 100.0, 100.0, 96.0, 110.0, 100.0, 100.0, 100.0, 100.0];
    let (_, minimum, _) = verdicts_of_two(&rates.map(|b| (1.0, b)));
    assert_eq!((minimum.disks_met, minimum.met_after_s), (1, Some(3.0)));
    assert_eq!((minimum.seconds_below, minimum.seconds_after_met), (1, 8));
    // The first two seconds do not count. The mean of 97 afterwards is too low: the limit is 98
    // less one request in six seconds.
    let (_, minimum, _) =
        verdicts_of_two(&[200.0, 200.0, 97.0, 97.0, 97.0, 97.0, 97.0, 97.0].map(|b| (1.0, b)));
    assert_eq!(
        (minimum.disks_met, minimum.met_after_s, minimum.lowest_mean_ratio),
        (0, Some(1.0), 0.97)
    );
    let (_, minimum, _) = verdicts_of_two(&[(1.0, 90.0); 8]);
    let never_met =
        MinimumCompliance { disks: 1, lowest_mean_ratio: 0.9, ..MinimumCompliance::default() };
    assert_eq!(minimum, never_met);
}

#[test]
fn a_maximum_is_judged_by_its_worst_window() {
    // The limit is 51.2: 50 plus 2 % plus one request in five seconds.
    let within_maximum = [40.0, 50.0, 51.0, 52.0, 51.0, 52.0, 50.0, 40.0].map(|a| (a, 200.0));
    let (maximum, ..) = verdicts_of_two(&within_maximum);
    assert_eq!(maximum.disks_within_maximum, 1);
    assert!((maximum.highest_window_ratio - 1.024).abs() < 1e-9, "{maximum:?}");
    let exceeded = [0.0, 52.0, 52.0, 52.0, 52.0, 52.0, 0.0, 0.0].map(|a| (a, 200.0));
    let (maximum, ..) = verdicts_of_two(&exceeded);
    assert_eq!(maximum.disks_within_maximum, 0, "{maximum:?}");
    assert!(maximum.mean_ratio < 1.0, "{maximum:?}");
    // A step that is shorter than a window is evaluated as one window.
    let (maximum, ..) = verdicts_of_two(&[(60.0, 200.0); 3]);
    assert_eq!((maximum.disks_within_maximum, maximum.highest_window_ratio), (0, 1.2));
    let (maximum, ..) = verdicts_of_two(&[]);
    assert_eq!((maximum.disks_within_maximum, maximum.highest_window_ratio), (1, 0.0));
}

#[test]
fn all_disks_together_are_evaluated_in_the_same_windows() {
    let settings = settings();
    let rates = [0.0, 0.0, 100.0, 100.0, 100.0, 100.0, 100.0, 0.0].map(|a| (a, 100.0));
    let together = evaluate_all(&record(&settings, &rates), 0, 2.0);
    assert_eq!(together.highest_window_iops, 200.0);
    assert!((together.mean_iops - (5.0 * 200.0 + 100.0) / 6.0).abs() < 1e-9, "{together:?}");
}

#[test]
fn limits_are_scaled_by_the_measured_rate() {
    let calibration = Calibration::new(10_000.0, 90, 18_000);
    assert_eq!((calibration.capacity_iops, calibration.scale), (9000, 0.5));
    let limits = Limits { min_iops: Some(3001), max_iops: None };
    let scaled = limits.scaled(calibration.scale);
    assert_eq!(scaled, Limits { min_iops: Some(1501), max_iops: None });
    assert_eq!(Limits { min_iops: Some(1), max_iops: Some(1) }.scaled(0.1).max_iops, Some(1));
}

#[test]
fn rates_of_fio_are_assigned_to_the_second_with_the_closest_end() {
    let settings = settings();
    let mut record = record(&settings, &[(50.0, 100.0); 3]);
    record.add_fio(1, &[(11_300, 8_192_000), (12_900, 819_200), (99_000, 1)]);
    let fio_rates: Vec<Option<f64>> =
        record.seconds.iter().map(|second| second.disks[1].fio_iops).collect();
    assert_eq!(fio_rates, [None, Some(1000.0), None, Some(100.0)]);
    assert_eq!(record.seconds[1].disks[0].fio_iops, None);
    assert_eq!(verdicts(&record, 0, 2.0)[1].fio_mean, Some(100.0));
}
