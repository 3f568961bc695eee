use core::time::Duration;

use suimon_quantity::Time;

use super::{
    DiskQosCounters, DiskTotals, DispatchCounters, FlowTotals, History, SAMPLE_INTERVAL, Window,
};

const START: Time = Time::from_ns(1 << 44);

fn totals(delivered: u64) -> DiskTotals {
    DiskTotals { delivered_operations: delivered, ..DiskTotals::default() }
}

/// Samples a disk that completes 10 operations each half second, for `time`. Returns the time at
/// the end.
fn run(history: &mut History, from: Time, delivered: &mut u64, time: Duration) -> Time {
    let mut now = from;
    while now.since(from) < time {
        history.sample(now, &totals(*delivered), &FlowTotals::default());
        now = now + SAMPLE_INTERVAL;
        *delivered += 10;
    }
    now
}

fn delivery(history: &History, window: Window, now: Time, delivered: u64) -> (f64, u64) {
    let actual = history.delivery(window, now, &totals(delivered), &FlowTotals::default());
    (actual.window_ns as f64 / 1e9, actual.delivered_operations)
}

#[test]
fn counters_that_began_again_have_no_rates_and_subtracted_requests_are_no_demand() {
    let counters = |demanded, delivered, busy_ns| DiskQosCounters {
        demanded_operations: demanded,
        delivered_operations: delivered,
        busy_ns,
        ..DiskQosCounters::default()
    };
    let before = counters(500, 400, 1000);
    assert_eq!(counters(10, 10, 2000).rates(&before, SAMPLE_INTERVAL), None);
    assert_eq!(counters(10, 400, 10).rates(&before, SAMPLE_INTERVAL), None);
    let rates = counters(499, 401, 1000).rates(&before, SAMPLE_INTERVAL).unwrap();
    assert_eq!((rates.demanded_iops, rates.delivered_iops), (0, 2));
}

#[test]
fn a_window_is_at_most_a_tenth_longer_than_requested() {
    let (mut history, mut delivered) = (History::default(), 0);
    let mut now = START;
    for _ in 0..1200 {
        now = run(&mut history, now, &mut delivered, SAMPLE_INTERVAL);
        let age = now.since(START).as_secs_f64();
        for (window, length) in [(Window::Short, 5.0_f64), (Window::Long, 300.0)] {
            let (window_s, operations) = delivery(&history, window, now, delivered);
            assert!(
                window_s >= length.min(age) && window_s <= length * 1.1 + 1e-6,
                "{age}: {window_s}"
            );
            assert_eq!(operations, (window_s * 20.0) as u64, "{age}");
        }
    }
}

/// No readings are taken while a store is idle.
#[test]
fn a_pause_is_not_part_of_windows_after_it() {
    let (mut history, mut delivered) = (History::default(), 0);
    let evening = run(&mut history, START, &mut delivered, Duration::from_secs(3600));
    let before = delivered;
    let morning = evening + Duration::from_secs(9 * 3600);
    // The window is empty before the first request, and correct directly after it.
    assert_eq!(delivery(&history, Window::Short, morning, delivered).1, 10);
    let now = run(&mut history, morning, &mut delivered, Duration::from_secs(2));
    for (window, length) in [(Window::Short, 5.0_f64), (Window::Long, 300.0)] {
        let (window_s, operations) = delivery(&history, window, now, delivered);
        assert!(window_s >= length && window_s <= length * 1.1, "{window:?}: {window_s}");
        assert!((40..=50).contains(&operations), "{window:?}: {operations}, {before} before");
    }
}

#[test]
fn readings_of_another_flow_are_made_comparable() {
    let flow = |guaranteed: u64, total: u64, others_minimums: u64| FlowTotals {
        guaranteed_operations: guaranteed,
        dispatch_counters: DispatchCounters {
            dispatches: total,
            others_minimum_dispatches: others_minimums,
        },
        ..FlowTotals::default()
    };
    let mut history = History::default();
    history.sample(START, &totals(0), &flow(1000, 500, 100));
    history.change_flow(&flow(1010, 505, 101), &flow(3, 505, 405));
    let now = START + Duration::from_secs(1);
    let actual = history.delivery(Window::Short, now, &totals(20), &flow(8, 510, 407));
    assert_eq!(
        (actual.guaranteed_operations, actual.store_dispatches, actual.others_minimum_dispatches),
        (15, 10, 3)
    );
}
