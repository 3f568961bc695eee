use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::view::StageTimes;

/// Clock that advances when `pass` is called, and by a fixed step on each read.
#[derive(Default)]
struct Clock {
    ns: AtomicU64,
    clock_read_ns: u64,
}

impl Clock {
    fn pass(&self, ns: u64) {
        self.ns.fetch_add(ns, Relaxed);
    }
}

impl WaitSet for Clock {
    fn watch(&mut self, _: BorrowedFd<'_>, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn unwatch(&mut self, _: BorrowedFd<'_>) {}

    fn wait(&mut self, _: Option<Time>, _: &mut Vec<u64>) -> io::Result<()> {
        Ok(())
    }

    fn yield_now(&mut self) {}

    fn now(&self) -> Time {
        Time::from_ns(self.ns.fetch_add(self.clock_read_ns, Relaxed))
    }

    fn cpu_time(&self) -> Duration {
        Duration::ZERO
    }
}

/// Simulated worker that follows a script.
struct Script {
    clock: Clock,
    stages: StageClock,
    counters: PublishedStageTimes,
    started_at: Time,
    /// True times by stage in ns, without clock reads.
    done: StageNanoseconds,
}

impl Script {
    fn new(look_ns: u64) -> Self {
        let clock = Clock { clock_read_ns: look_ns, ..Clock::default() };
        let stages = StageClock::new(&clock);
        let started_at = stages.round_began;
        Self {
            clock,
            stages,
            counters: PublishedStageTimes::default(),
            started_at,
            done: StageNanoseconds::default(),
        }
    }

    /// Runs one round with these stages and durations in ns. It moves frames if it contains
    /// anything but polls.
    fn round(&mut self, work: &[(Stage, u64)]) {
        for (stage, ns) in work {
            self.clock.pass(*ns);
            self.done[stage.index()] += ns;
            self.stages.probe(&self.clock).end_stage(*stage);
        }
        let moved = work.iter().any(|(stage, _)| *stage != Stage::Poll);
        self.stages.end_round(self.clock.now(), moved);
    }

    fn sleep(&mut self, ns: u64) {
        self.stages.publish(&self.counters, true);
        self.clock.pass(ns);
        self.done[Stage::Idle.index()] += ns;
        self.stages.end_sleep(self.clock.now());
    }

    fn published(&mut self) -> StageTimes {
        self.stages.publish(&self.counters, false);
        self.counters.read(self.clock.now()).0
    }

    fn elapsed_ns(&self) -> u64 {
        ns_between(self.started_at, self.stages.round_began)
    }

    /// Returns the reported and the true share of a stage in the time in which the worker was
    /// awake.
    fn shares(&mut self, stage: Stage) -> [f64; 2] {
        let published = self.published();
        let awake = published.awake_ns() as f64;
        let total: u64 = self.done.iter().sum::<u64>() - self.done[Stage::Idle.index()];
        [published.ns(stage) as f64 / awake, self.done[stage.index()] as f64 / total as f64]
    }
}

fn sum(times: &StageTimes) -> u64 {
    times.awake_ns() + times.ns(Stage::Idle)
}

const SMALL: [(Stage, u64); 5] = [
    (Stage::CopyIn, 300),
    (Stage::Classify, 200),
    (Stage::Coalesce, 50),
    (Stage::CopyOut, 400),
    (Stage::Notify, 50),
];

const LARGE: [(Stage, u64); 6] = [
    (Stage::CopyIn, 40_000),
    (Stage::Classify, 200),
    (Stage::Segment, 30_000),
    (Stage::Checksum, 60_000),
    (Stage::CopyOut, 90_000),
    (Stage::Notify, 3000),
];

#[test]
fn rounds_of_one_kind_are_split_as_they_are() {
    let mut script = Script::new(0);
    for _ in 0..1000 {
        script.round(&SMALL);
    }
    let reported = script.published();
    for (stage, ns) in SMALL {
        let (reported, expected) = (reported.ns(stage), 1000 * ns);
        assert!(
            reported.abs_diff(expected) <= expected / 1000,
            "{stage:?}: {reported} of {expected}"
        );
    }
    assert_eq!(sum(&reported), script.elapsed_ns());
}

#[test]
fn rounds_that_find_nothing_are_polls_and_sleep_is_idle() {
    let mut script = Script::new(0);
    script.round(&SMALL);
    for _ in 0..500 {
        script.round(&[(Stage::Poll, 70)]);
        script.sleep(1_000_000);
    }
    let reported = script.published();
    assert_eq!(reported.ns(Stage::Poll), 500 * 70);
    assert_eq!(reported.ns(Stage::Idle), 500_000_000);
    assert_eq!(reported.ns(Stage::CopyOut), 400);
    assert_eq!(sum(&reported), script.elapsed_ns());
}

#[test]
fn clock_reads_are_attributed_to_no_stage() {
    let mut script = Script::new(25);
    for _ in 0..10_000 {
        script.round(&SMALL);
    }
    for (stage, _) in SMALL {
        let [reported, expected] = script.shares(stage);
        assert!((reported - expected).abs() < 0.01, "{stage:?}: {reported} of {expected}");
    }
    let reported = script.published();
    assert_eq!(sum(&reported), script.elapsed_ns(), "but it is time");
}

#[test]
fn rare_long_rounds_are_measured_correctly_at_any_period() {
    for period in [2, 3, 16, 61, 63, 64, 65, 100, 127, 128, 500] {
        let mut script = Script::new(0);
        for round in 0..200_000_u32 {
            script.round(if round % period == 0 { &LARGE } else { &SMALL });
            if round % 7 == 0 {
                script.published();
            }
        }
        for stage in [Stage::Segment, Stage::Checksum, Stage::CopyOut, Stage::Classify] {
            let [reported, expected] = script.shares(stage);
            // Until the first of them was timed, long rounds are divided like short ones.
            assert!(
                (reported - expected).abs() < 0.03,
                "{stage:?}, each {period}th: {reported} of {expected}"
            );
        }
    }
}

#[test]
fn rounds_of_equal_length_and_different_stages_are_distinguished() {
    let joins = [(Stage::CopyIn, 500), (Stage::Coalesce, 500)];
    for period in [2, 4, 64, 128] {
        let mut script = Script::new(0);
        for round in 0..200_000_u32 {
            script.round(if round % period == 0 { &joins } else { &SMALL });
            if round % 100 == 0 {
                script.published();
            }
        }
        let [reported, expected] = script.shares(Stage::Coalesce);
        assert!((reported - expected).abs() < 0.03, "each {period}th: {reported} of {expected}");
    }
}

#[test]
fn a_stage_that_no_longer_happens_stops_growing() {
    let mut script = Script::new(0);
    for _ in 0..10_000 {
        script.round(&LARGE);
    }
    for _ in 0..20_000 {
        script.round(&SMALL);
    }
    let before = script.published().ns(Stage::Segment);
    for _ in 0..100_000 {
        script.round(&SMALL);
    }
    assert_eq!(script.published().ns(Stage::Segment), before);
}

#[test]
fn another_load_is_known_by_its_first_timed_round() {
    let before = [(Stage::CopyIn, 600), (Stage::Segment, 400)];
    let mut script = Script::new(0);
    for _ in 0..10_000 {
        script.round(&before);
    }
    script.published();
    script.sleep(1_000_000_000);
    // The second round is timed, because the first one has a class without recent proportions.
    for _ in 0..2 {
        script.round(&SMALL);
    }
    let segment = script.published().ns(Stage::Segment);
    assert!(segment.abs_diff(10_000 * 400) < 100, "{segment}");
    for _ in 0..10_000 {
        script.round(&SMALL);
    }
    assert_eq!(script.published().ns(Stage::Segment), segment);
}

#[test]
fn a_rare_round_of_a_length_that_was_forgotten_is_split_as_the_load_is() {
    let mut script = Script::new(0);
    for _ in 0..500 {
        script.round(&[(Stage::CopyIn, 3_000_000), (Stage::Segment, 1_000_000)]);
    }
    for _ in 0..200_000 {
        script.round(&SMALL);
    }
    let before = script.published().ns(Stage::Segment);
    // A round in which the CPU was preempted, for example.
    script.round(&[(Stage::CopyOut, 4_000_000)]);
    for _ in 0..1000 {
        script.round(&SMALL);
    }
    assert_eq!(script.published().ns(Stage::Segment), before);
}

#[test]
fn gaps_are_of_all_lengths_and_64_on_average() {
    let mut gaps = Gaps::default();
    let mut counts = [0_u32; GAP_MAX as usize];
    for _ in 0..127_000 {
        counts[gaps.next_gap() as usize - 1] += 1;
    }
    assert!(counts.iter().all(|times| (800..1200).contains(times)), "{counts:?}");
    let sum: u64 = (1..).zip(&counts).map(|(gap, times)| gap * u64::from(*times)).sum();
    assert!((63 * 127_000..65 * 127_000).contains(&sum), "{sum}");
}

#[test]
fn absurd_times_are_survived() {
    let mut script = Script::new(0);
    for ns in [0, 1, u64::from(u32::MAX), 1 << 45, 0] {
        script.round(&[(Stage::CopyIn, ns), (Stage::CopyOut, ns / 3)]);
        script.sleep(ns);
    }
    // A clock that goes back.
    script.stages.end_round(Time::ZERO, true);
    script.stages.end_round(Time::ZERO, false);
    script.stages.end_sleep(Time::ZERO);
    script.published();
}

proptest! {
    #[test]
    fn stages_add_up_to_the_time_that_passed_and_never_go_back(
        look_ns in prop_oneof![Just(0_u64), 1..50_u64],
        steps in prop::collection::vec(
            (0..12_usize, prop::collection::vec((0..8_usize, 0..300_000_u64), 0..6), 0..40_000_u64),
            1..300,
        ),
    ) {
        let mut script = Script::new(look_ns);
        let mut last = StageTimes::default();
        for (action, work, ns) in steps {
            match action {
                0..8 => {
                    let work: Vec<_> =
                        work.into_iter().map(|(stage, ns)| (Stage::ALL[stage], ns)).collect();
                    script.round(&work);
                }
                8..10 => script.sleep(ns),
                _ => {
                    let published = script.published();
                    prop_assert_eq!(sum(&published), script.elapsed_ns());
                    for stage in Stage::ALL {
                        prop_assert!(published.ns(stage) >= last.ns(stage));
                    }
                    last = published;
                }
            }
        }
    }
}
