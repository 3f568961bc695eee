use core::time::Duration;

use suimon_ports::FileIoFactory;
use suimon_ports::testing::{MemoryStore, RateLimit, RateLimitedIo, StoreOp};
use suimon_storage_qos::StoreSpec;

use super::*;

const STEP: Duration = Duration::from_millis(1);

fn plan(seconds: u64) -> MeasurePlan {
    MeasurePlan {
        spec: StoreSpec::default(),
        pattern_duration: Duration::from_secs(seconds),
        seed: 1,
    }
}

fn begin(store: &MemoryStore, devices: &RateLimitedIo) -> Result<Measurement, MeasureError> {
    Measurement::begin(store, devices.open().unwrap(), plan(3))
}

/// Performs a step each simulated millisecond until the measurement is done. Returns the progress
/// after each step.
fn run(measurement: &mut Measurement) -> Result<Vec<MeasureProgress>, MeasureError> {
    let mut reported = Vec::new();
    for ms in 0..200_000u32 {
        let progress = measurement.step(Time::from_ns(1 << 40) + STEP * ms)?;
        if reported.last() != Some(&progress) {
            reported.push(progress.clone());
        }
        if progress.is_done {
            return Ok(reported);
        }
    }
    panic!("not done: {:?}", reported.last());
}

#[test]
fn the_capacity_is_the_lowest_rate_of_all_patterns() {
    let store = MemoryStore::default();
    // In each millisecond, 12 reads or 4 writes complete.
    let devices = RateLimitedIo::new(RateLimit { cost_per_poll: 12, write_cost: 3, failure: None });
    let mut measurement = begin(&store, &devices).unwrap();
    let reported = run(&mut measurement).unwrap();
    let measured = measurement.result().clone();
    let [read, write, mixed] = &measured.results[..] else { panic!("{measured:?}") };
    assert!((11_800..=12_000).contains(&read.iops), "{read:?}");
    assert!((3_900..=4_100).contains(&write.iops), "{write:?}");
    assert!((5_500..=6_800).contains(&mixed.iops), "{mixed:?}");
    assert_eq!(measured.iops(), write.iops);
    assert_eq!(measured.file_bytes, FILE_BYTES_MAX);
    assert!(read.latencies.p50_ns >= 1_000_000 && read.depth >= 4, "{read:?}");
    // Each part was reported, in order.
    assert_eq!(reported.last().map(|last| (last.stages_done, last.stages_total)), Some((4, 4)));
    assert!(reported.is_sorted_by_key(|progress| progress.stages_done));
    for part in ["fill the test file", "random reads", "random writes", "half reads"] {
        assert!(
            reported.iter().any(|progress| progress.stage_description.starts_with(part)),
            "{part}"
        );
    }
    // The depth limit of the store was not exceeded.
    assert!(devices.completion_counts().2 <= 256, "{:?}", devices.completion_counts());
}

#[test]
fn the_test_file_has_no_name_and_is_closed_on_drop() {
    let store = MemoryStore::default();
    let devices = RateLimitedIo::new(RateLimit { cost_per_poll: 4, ..RateLimit::default() });
    for steps in [0, 1, 100, 5_000] {
        let mut measurement = begin(&store, &devices).unwrap();
        for ms in 0..steps {
            measurement.step(Time::from_ns(1 << 40) + STEP * ms).unwrap();
            assert!(store.files().is_empty());
        }
        drop(measurement);
        assert!(store.files().is_empty());
        assert_eq!(devices.open_count(), 0);
    }
    // A process that dies between creating and removing the file leaves a file that a sweep
    // removes.
    let create_index = store.ops().iter().position(|op| matches!(op, StoreOp::Create(..))).unwrap();
    let crashed = store.store_after_crash(create_index + 1, || unreachable!("nothing was written"));
    assert_eq!(crashed.files().len(), 1);
    assert_eq!(suimon_image_files::remove_all_incomplete(&crashed, &[]).unwrap().len(), 1);
    assert!(crashed.files().is_empty());
}

#[test]
fn a_full_store_and_device_errors_are_reported_and_leave_no_file() {
    let store = MemoryStore::default();
    store.set_change_limit(Some(0));
    let devices = RateLimitedIo::new(RateLimit { cost_per_poll: 4, ..RateLimit::default() });
    let error = begin(&store, &devices).err().unwrap();
    assert!(matches!(error, MeasureError::NoRoom { free_mib: 0 }), "{error}");
    store.set_change_limit(None);
    let mut measurement = begin(&store, &devices).unwrap();
    measurement.step(Time::from_ns(1)).unwrap();
    let fails = Some(io::ErrorKind::StorageFull);
    devices.set(RateLimit { cost_per_poll: 4, failure: fails, ..RateLimit::default() });
    let error = run(&mut measurement).unwrap_err();
    assert!(error.to_string().starts_with("filling at offset 0 failed"), "{error}");
    drop(measurement);
    assert!(store.files().is_empty());
    assert_eq!(devices.open_count(), 0);
}

/// Runs a measurement of 3 s per read/write mix on a device that completes nothing for `ms`
/// milliseconds after the start of the first mix. Returns the result of that mix.
fn run_with_silence(ms: u32) -> Result<PatternResult, MeasureError> {
    let store = MemoryStore::default();
    let devices = RateLimitedIo::new(RateLimit { cost_per_poll: 64, ..RateLimit::default() });
    let mut measurement = begin(&store, &devices).unwrap();
    let mut now = Time::from_ns(1 << 40);
    let mut step = |measurement: &mut Measurement| {
        now = now + STEP;
        measurement.step(now)
    };
    while step(&mut measurement).unwrap().stages_done == 0 {}
    devices.set(RateLimit::default());
    for _ in 0..ms {
        step(&mut measurement)?;
    }
    devices.set(RateLimit { cost_per_poll: 64, ..RateLimit::default() });
    for _ in 0..1000 {
        if step(&mut measurement)?.stages_done == 2 {
            break;
        }
    }
    Ok(measurement.result().results[0])
}

#[test]
fn a_slow_device_has_a_low_rate_and_a_device_without_completions_none() {
    // One request completes after 5 s of counting.
    let late_result = run_with_silence(6_000).unwrap();
    assert_eq!(late_result.iops, 1, "{late_result:?}");
    // The requests in flight complete after the limit, and none was counted.
    let error = run_with_silence(40_000).unwrap_err();
    assert!(matches!(error, MeasureError::NoCompletions(33)), "{error}");
}
