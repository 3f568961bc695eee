use super::*;

const NOW: Time = Time::from_ns(1 << 44);
const HOUR: Duration = Duration::from_secs(3601);

/// Completes a batch of requests that took `us` each; returns the part of one in microseconds.
fn complete(of: &mut OwnLatency, now: Time, depth: u32, us: u64) -> (u64, u64) {
    let sum_ns = us * 1000 * u64::from(BATCH);
    of.handle_completed(now, 0, depth, BATCH, sum_ns);
    let own = of.handle_completed(now + SPAN, 0, depth, BATCH, sum_ns);
    let each = |ns: u64| ns / u64::from(BATCH) / 1000;
    (each(own.own_ns), each(own.unloaded_ns))
}

#[test]
fn latency_is_compared_with_the_lowest_at_the_same_depth() {
    let mut of = OwnLatency::default();
    assert_eq!(complete(&mut of, NOW, 32, 800), (800, 800), "nothing else is known");
    assert_eq!(complete(&mut of, NOW, 1, 100), (100, 100));
    assert_eq!(complete(&mut of, NOW, 32, 1600), (800, 100));
    assert_eq!(complete(&mut of, NOW, 1, 900), (100, 100));
    // Of a depth between them the larger one is known.
    assert_eq!(complete(&mut of, NOW, 8, 2000), (800, 100));
    // Twice as deep takes at most twice as long.
    assert_eq!(complete(&mut of, NOW, 128, 9000), (3200, 100));
    // Requests of another size say nothing.
    let own = of.handle_completed(NOW, 2, 1, 1, 5_000_000);
    assert_eq!(own, Own { own_ns: 5_000_000, unloaded_ns: 5_000_000 });
}

#[test]
fn few_requests_and_a_short_time_are_no_sample() {
    let mut of = OwnLatency::default();
    // Many in a moment are none, and few in a long time are none.
    for _ in 0..1000 {
        assert_eq!(of.handle_completed(NOW, 0, 1, 1, 1000).own_ns, 1000);
    }
    assert_eq!(of.handle_completed(NOW, 0, 1, 1, 300_000).own_ns, 300_000);
    for _ in 1..BATCH {
        of.handle_completed(NOW + SPAN, 0, 8, 1, 1000);
    }
    assert_eq!(of.handle_completed(NOW + SPAN, 0, 8, 1, 300_000).own_ns, 300_000);
}

#[test]
fn a_lowest_latency_is_forgotten_after_two_hours_at_most() {
    let mut of = OwnLatency::default();
    complete(&mut of, NOW, 1, 100);
    assert_eq!(complete(&mut of, NOW + HOUR, 1, 500), (100, 100));
    assert_eq!(complete(&mut of, NOW + 2 * HOUR, 1, 500), (500, 500));
}

#[test]
fn a_measurement_is_known_from_the_start() {
    let mut of = OwnLatency::default();
    of.set_measured(Some(MeasuredLatency { depth: 8, latency_ns: 400_000 }));
    assert_eq!(complete(&mut of, NOW, 4, 2000), (400, 400));
    of.set_measured(None);
    assert_eq!(complete(&mut of, NOW, 4, 3000), (2000, 2000));
}
