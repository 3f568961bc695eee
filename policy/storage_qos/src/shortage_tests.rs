use super::*;

/// Evaluates a number of samples with the same estimate. Returns the events.
fn run(
    shortage: &mut Shortage,
    at: &mut Time,
    samples: u32,
    iops: u64,
    promised_iops: u64,
) -> Vec<StoreEvent> {
    let mut told = Vec::new();
    for _ in 0..samples {
        *at = *at + Duration::from_millis(500);
        let estimate = CapacityEstimate { iops, at: *at };
        told.extend(shortage.evaluate(*at, estimate, true, promised_iops));
    }
    told
}

#[test]
fn a_store_that_does_too_little_is_told_once_and_so_is_its_end() {
    let (mut shortage, mut at) = (Shortage::default(), Time::from_ns(1 << 40));
    // A sum of 900 of 1000 is permitted. A capacity that is 5 % lower causes no event.
    assert_eq!(run(&mut shortage, &mut at, 400, 950, 900), []);
    assert_eq!(run(&mut shortage, &mut at, 100, 949, 900), []);
    let told = run(&mut shortage, &mut at, 200, 949, 900);
    let [StoreEvent::CapacityLow(low)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((low.estimate_iops, low.reserved_iops, low.needed_iops), (949, 900, 1000));
    assert_eq!(low.lasting, LASTING);
    // The capacity must be sufficient for the same time.
    assert_eq!(run(&mut shortage, &mut at, 400, 979, 900), []);
    assert_eq!(run(&mut shortage, &mut at, 100, 980, 900), []);
    assert_eq!(run(&mut shortage, &mut at, 5, 979, 900), []);
    let told = run(&mut shortage, &mut at, 130, 980, 900);
    assert!(
        matches!(&told[..], [StoreEvent::CapacitySufficient { needed_iops: 1000, .. }]),
        "{told:?}"
    );
    assert_eq!(run(&mut shortage, &mut at, 400, 960, 900), []);
}

#[test]
fn a_store_of_which_all_is_promised_may_dip() {
    let (mut shortage, mut at) = (Shortage::default(), Time::from_ns(1 << 40));
    for _ in 0..50 {
        // The capacity is slightly too low most of the time, and clearly too low for less than a
        // minute.
        assert_eq!(run(&mut shortage, &mut at, 300, 970, 900), []);
        assert_eq!(run(&mut shortage, &mut at, 100, 700, 900), []);
    }
}

#[test]
fn two_moments_far_apart_are_not_lasting() {
    let (mut shortage, mut at) = (Shortage::default(), Time::from_ns(1 << 40));
    for _ in 0..20 {
        assert_eq!(run(&mut shortage, &mut at, 10, 10, 900), []);
        at = at + Duration::from_secs(60);
    }
}

#[test]
fn fewer_promises_end_it_without_another_sample() {
    let (mut shortage, mut at) = (Shortage::default(), Time::from_ns(1 << 40));
    assert_eq!(run(&mut shortage, &mut at, 200, 500, 900).len(), 1);
    let estimate = CapacityEstimate { iops: 500, at };
    let mut told = Vec::new();
    for _ in 0..200 {
        at = at + Duration::from_millis(500);
        told.extend(shortage.evaluate(at, estimate, false, 90));
    }
    assert!(matches!(&told[..], [StoreEvent::CapacitySufficient { .. }]), "{told:?}");
    // Minimums without load on the device give no new estimate.
    for _ in 0..200 {
        at = at + Duration::from_millis(500);
        assert_eq!(shortage.evaluate(at, estimate, false, 900), None);
    }
}
