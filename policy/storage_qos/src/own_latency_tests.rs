use super::*;

const NOW: Time = Time::from_ns(1 << 44);
const HOUR: Duration = Duration::from_secs(3601);

/// Returns completed reads of 4 KiB.
fn reads(requests: u32) -> CompletedRequests {
    CompletedRequests { operation: IoKind::Read, bytes: 4096, requests, latency_sum_ns: None }
}

/// Completes a batch of requests twice at queue depth `depth`; each takes `us` microseconds.
/// Returns the portions of one request's latency that are due to the device: at this depth and at
/// the lowest depth, in microseconds.
fn complete(own_latency: &mut OwnLatency, now: Time, depth: u32, us: u64) -> (u64, u64) {
    complete_all(own_latency, now, reads(BATCH), depth, us)
}

/// Completes `requests` twice, at `us` microseconds each. Returns the portions of one request's
/// latency that are due to the device, as [`complete`] does.
fn complete_all(
    own_latency: &mut OwnLatency,
    now: Time,
    requests: CompletedRequests,
    depth: u32,
    us: u64,
) -> (u64, u64) {
    let sum_ns = us * 1000 * u64::from(requests.requests);
    own_latency.handle_completed(now, requests, depth, sum_ns);
    let latency = own_latency.handle_completed(now + SPAN, requests, depth, sum_ns);
    let per_request_us = |ns: u64| ns / u64::from(BATCH) / 1000;
    (per_request_us(latency.own_latency_ns), per_request_us(latency.unloaded_latency_ns))
}

#[test]
fn latency_is_compared_with_the_lowest_at_the_same_depth() {
    let mut own_latency = OwnLatency::default();
    assert_eq!(complete(&mut own_latency, NOW, 32, 800), (800, 800), "nothing else is known");
    assert_eq!(complete(&mut own_latency, NOW, 1, 100), (100, 100));
    assert_eq!(complete(&mut own_latency, NOW, 32, 1600), (800, 100));
    assert_eq!(complete(&mut own_latency, NOW, 1, 900), (100, 100));
    // The latency of a depth in between is bounded by that of the larger depth.
    assert_eq!(complete(&mut own_latency, NOW, 8, 2000), (800, 100));
    // At twice the depth, latency is at most twice as high.
    assert_eq!(complete(&mut own_latency, NOW, 128, 9000), (3200, 100));
    // Requests of another size class are unaffected.
    let large = CompletedRequests { bytes: 65_536, ..reads(1) };
    let latency = own_latency.handle_completed(NOW, large, 1, 5_000_000);
    assert_eq!(
        latency,
        OwnLatencyPortions { own_latency_ns: 5_000_000, unloaded_latency_ns: 5_000_000 }
    );
}

#[test]
fn few_requests_and_a_short_time_are_no_sample() {
    let mut own_latency = OwnLatency::default();
    // Many requests in a short time do not form a sample, nor do few requests in a long time.
    for _ in 0..1000 {
        assert_eq!(own_latency.handle_completed(NOW, reads(1), 1, 1000).own_latency_ns, 1000);
    }
    assert_eq!(own_latency.handle_completed(NOW, reads(1), 1, 300_000).own_latency_ns, 300_000);
    for _ in 1..BATCH {
        own_latency.handle_completed(NOW + SPAN, reads(1), 8, 1000);
    }
    assert_eq!(
        own_latency.handle_completed(NOW + SPAN, reads(1), 8, 300_000).own_latency_ns,
        300_000
    );
}

#[test]
fn a_lowest_latency_is_forgotten_after_two_hours_at_most() {
    let mut own_latency = OwnLatency::default();
    complete(&mut own_latency, NOW, 1, 100);
    assert_eq!(complete(&mut own_latency, NOW + HOUR, 1, 500), (100, 100));
    assert_eq!(complete(&mut own_latency, NOW + 2 * HOUR, 1, 500), (500, 500));
}

#[test]
fn a_measurement_is_known_from_the_start() {
    let mut own_latency = OwnLatency::default();
    let measured = MeasuredLatency { depth: 8, latency_ns: 400_000 };
    own_latency.set_measured(Some(measured), Normalization::default());
    assert_eq!(complete(&mut own_latency, NOW, 4, 2000), (400, 400));
    own_latency.set_measured(None, Normalization::default());
    assert_eq!(complete(&mut own_latency, NOW, 4, 3000), (2000, 2000));
}

#[test]
fn a_measurement_bounds_requests_of_its_size_and_smaller_ones() {
    let mut own_latency = OwnLatency::default();
    let measured = MeasuredLatency { depth: 8, latency_ns: 400_000 };
    own_latency.set_measured(Some(measured), Normalization::default());
    let writes = CompletedRequests { operation: IoKind::Write, bytes: 8192, ..reads(BATCH) };
    assert_eq!(complete_all(&mut own_latency, NOW, writes, 4, 2000), (400, 400));
    let larger = CompletedRequests { bytes: 8193, ..reads(BATCH) };
    assert_eq!(complete_all(&mut own_latency, NOW, larger, 4, 2000), (2000, 2000));
}

/// A write cache completes writes 100 times as fast as reads.
#[test]
fn writes_do_not_affect_the_latency_of_reads() {
    let mut own_latency = OwnLatency::default();
    let writes = CompletedRequests { operation: IoKind::Write, ..reads(BATCH) };
    assert_eq!(complete_all(&mut own_latency, NOW, writes, 4, 50), (50, 50));
    assert_eq!(complete(&mut own_latency, NOW, 4, 5000), (5000, 5000));
    assert_eq!(complete_all(&mut own_latency, NOW, writes, 4, 5000), (50, 50));
    assert_eq!(complete(&mut own_latency, NOW, 4, 15_000), (5000, 5000));
}

/// A device that transfers 100 MB/s takes 160 us for 16 KiB and 5 ms for 512 KiB.
#[test]
fn requests_of_other_sizes_have_an_own_latency_of_their_own() {
    let mut own_latency = OwnLatency::default();
    for power in 0..=9 {
        let bytes = 4096 << power;
        let us = u64::from(bytes) / 100;
        let requests = CompletedRequests { bytes, ..reads(BATCH) };
        assert_eq!(complete_all(&mut own_latency, NOW, requests, 1, us), (us, us), "{bytes}");
        let requests = CompletedRequests { bytes: bytes - 1, ..requests };
        assert_eq!(complete_all(&mut own_latency, NOW, requests, 1, 10 * us), (us, us), "{bytes}");
    }
}

#[test]
fn flushes_and_discards_have_no_own_latency() {
    let mut own_latency = OwnLatency::default();
    for operation in [IoKind::Flush, IoKind::Other] {
        let requests = CompletedRequests { operation, ..reads(BATCH) };
        assert_eq!(complete_all(&mut own_latency, NOW, requests, 1, 10), (10, 10));
        assert_eq!(complete_all(&mut own_latency, NOW, requests, 1, 9000), (9000, 9000));
    }
    assert_eq!(complete(&mut own_latency, NOW, 1, 5000), (5000, 5000));
}
