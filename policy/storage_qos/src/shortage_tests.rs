use super::*;

/// Evaluates `samples` samples with the same estimate and sum of minimums. Returns the events.
fn run(
    shortage: &mut ShortageDetector,
    now: &mut Time,
    samples: u32,
    iops: u64,
    promised_iops: u64,
) -> Vec<StoreEvent> {
    let mut events = Vec::new();
    for _ in 0..samples {
        *now = *now + Duration::from_millis(500);
        let estimate = CapacityEstimate { iops, sampled_at: *now };
        events.extend(shortage.evaluate(*now, estimate, true, promised_iops));
    }
    events
}

#[test]
fn a_shortage_is_reported_once_and_so_is_its_end() {
    let (mut shortage, mut now) = (ShortageDetector::default(), Time::from_ns(1 << 40));
    // A sum of 900 of 1000 is permitted. A capacity that is 5 % lower causes no event.
    assert_eq!(run(&mut shortage, &mut now, 400, 950, 900), []);
    assert_eq!(run(&mut shortage, &mut now, 100, 949, 900), []);
    let events = run(&mut shortage, &mut now, 200, 949, 900);
    let [StoreEvent::CapacityLow(low)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((low.estimate_iops, low.reserved_iops, low.needed_iops), (949, 900, 1000));
    assert_eq!(low.low_for, LASTING);
    // The capacity must be sufficient for the same time.
    assert_eq!(run(&mut shortage, &mut now, 400, 979, 900), []);
    assert_eq!(run(&mut shortage, &mut now, 100, 980, 900), []);
    assert_eq!(run(&mut shortage, &mut now, 5, 979, 900), []);
    let events = run(&mut shortage, &mut now, 130, 980, 900);
    assert!(
        matches!(&events[..], [StoreEvent::CapacitySufficient { needed_iops: 1000, .. }]),
        "{events:?}"
    );
    assert_eq!(run(&mut shortage, &mut now, 400, 960, 900), []);
}

#[test]
fn a_fully_reserved_store_may_briefly_fall_short() {
    let (mut shortage, mut now) = (ShortageDetector::default(), Time::from_ns(1 << 40));
    for _ in 0..50 {
        // The capacity is slightly too low most of the time, and clearly too low for less than a
        // minute.
        assert_eq!(run(&mut shortage, &mut now, 300, 970, 900), []);
        assert_eq!(run(&mut shortage, &mut now, 100, 700, 900), []);
    }
}

#[test]
fn two_moments_far_apart_are_not_lasting() {
    let (mut shortage, mut now) = (ShortageDetector::default(), Time::from_ns(1 << 40));
    for _ in 0..20 {
        assert_eq!(run(&mut shortage, &mut now, 10, 10, 900), []);
        now = now + Duration::from_secs(60);
    }
}

#[test]
fn lower_minimums_end_a_shortage_without_another_sample() {
    let (mut shortage, mut now) = (ShortageDetector::default(), Time::from_ns(1 << 40));
    assert_eq!(run(&mut shortage, &mut now, 200, 500, 900).len(), 1);
    let estimate = CapacityEstimate { iops: 500, sampled_at: now };
    let mut events = Vec::new();
    for _ in 0..200 {
        now = now + Duration::from_millis(500);
        events.extend(shortage.evaluate(now, estimate, false, 90));
    }
    assert!(matches!(&events[..], [StoreEvent::CapacitySufficient { .. }]), "{events:?}");
    // Minimums without load on the device give no new estimate.
    for _ in 0..200 {
        now = now + Duration::from_millis(500);
        assert_eq!(shortage.evaluate(now, estimate, false, 900), None);
    }
}
