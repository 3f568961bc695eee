//! Tests of [`EpollWait`] with real descriptors, threads and time.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::pipe::{PipeFlags, pipe_with};

use super::*;

/// Returns one instance with `epoll_pwait2` and one with a timer.
fn waits() -> [EpollWait; 2] {
    let mut with_timer = EpollWait::new().unwrap();
    with_timer.use_timer().unwrap();
    [EpollWait::new().unwrap(), with_timer]
}

fn pipe() -> (OwnedFd, OwnedFd) {
    pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap()
}

fn after(wait: &EpollWait, span: Duration) -> Option<Time> {
    Some(wait.now() + span)
}

#[test]
fn a_deadline_is_met_and_never_early() {
    for mut wait in waits() {
        let mut ready = Vec::new();
        for us in [1, 10, 100, 1_000, 10_000] {
            let deadline = wait.now() + Duration::from_micros(us);
            wait.wait(Some(deadline), &mut ready).unwrap();
            assert!(wait.now() >= deadline, "woke {us} us sleep early");
            assert!(ready.is_empty());
        }
        // Now, in the past and at the origin: no sleep. A wait that slept here would have no
        // deadline; the limit is far above delays by load.
        let start = wait.now();
        for deadline in [start, Time::ZERO] {
            wait.wait(Some(deadline), &mut ready).unwrap();
        }
        wait.wait(None, &mut ready).unwrap();
        assert!(wait.now().since(start) < Duration::from_secs(60));
    }
}

#[test]
fn readable_descriptors_are_reported_until_unwatched() {
    for mut wait in waits() {
        let (reader, writer) = pipe();
        let (silent, _writer) = pipe();
        wait.watch(reader.as_fd(), 7).unwrap();
        wait.watch(silent.as_fd(), TOKEN_MAX).unwrap();
        let mut ready = vec![99];
        wait.wait(None, &mut ready).unwrap();
        assert_eq!(ready, [99]);
        rustix::io::write(&writer, b"x").unwrap();
        wait.wait(None, &mut ready).unwrap();
        wait.wait(Some(Time::NEVER), &mut ready).unwrap();
        assert_eq!(ready, [99, 7, 7], "level-triggered, appended");
        wait.unwatch(reader.as_fd());
        wait.unwatch(reader.as_fd());
        ready.clear();
        let deadline = after(&wait, Duration::from_millis(5));
        wait.wait(deadline, &mut ready).unwrap();
        assert!(ready.is_empty());
        // A token may be reused, and a hang-up counts as readable.
        wait.watch(reader.as_fd(), 7).unwrap();
        drop(writer);
        drain(reader.as_fd());
        wait.wait(None, &mut ready).unwrap();
        assert_eq!(ready, [7]);
    }
}

#[test]
fn more_descriptors_than_one_call_reports_all_get_their_turn() {
    for mut wait in waits() {
        let pipes: Vec<_> = (0..150).map(|_| pipe()).collect();
        for (token, (reader, writer)) in pipes.iter().enumerate() {
            wait.watch(reader.as_fd(), token as u64).unwrap();
            rustix::io::write(writer, b"x").unwrap();
        }
        let mut reported = Vec::new();
        for _ in 0..3 {
            wait.wait(None, &mut reported).unwrap();
        }
        reported.sort_unstable();
        reported.dedup();
        assert_eq!(reported.len(), 150);
    }
}

#[test]
fn a_wake_up_while_awake_ends_the_next_sleep() {
    for mut wait in waits() {
        let waker = wait.waker();
        let mut ready = Vec::new();
        waker.wake();
        waker.wake();
        wait.wait(None, &mut ready).unwrap();
        let start = wait.now();
        wait.wait(Some(Time::NEVER), &mut ready).unwrap();
        // The wake-up is consumed now.
        wait.wait(after(&wait, Duration::from_millis(20)), &mut ready).unwrap();
        assert!(wait.now().since(start) >= Duration::from_millis(20));
        assert!(ready.is_empty());
    }
}

#[test]
fn waking_an_awake_worker_makes_no_system_call() {
    let wait = EpollWait::new().unwrap();
    let waker = wait.waker();
    for _ in 0..1_000 {
        waker.wake();
    }
    let mut count = [0; 8];
    let kicks = rustix::io::read(&wait.shared.kick, &mut count);
    assert_eq!(kicks, Err(Errno::AGAIN));
}

/// Two threads wake each other in turn, `rounds` times. A lost wake-up leaves both asleep.
fn wake_alternately(rounds: u64) {
    for (mut first, mut second) in
        [(EpollWait::new().unwrap(), EpollWait::new().unwrap()), waits().into()]
    {
        let (to_here, to_there) = (first.waker(), second.waker());
        let ball = Arc::new(AtomicU64::new(0));
        let peer_ball = Arc::clone(&ball);
        let play = move |wait: &mut EpollWait, waker: &EventWaker, ball: &AtomicU64, odd: u64| {
            let mut ready = Vec::new();
            loop {
                let value = ball.load(Ordering::Relaxed);
                if value >= rounds {
                    waker.wake();
                    return;
                }
                if value % 2 == odd {
                    // Relaxed on purpose: the flag alone must carry the order.
                    ball.store(value + 1, Ordering::Relaxed);
                    waker.wake();
                } else {
                    // Time limit for one wake-up, whose sender may have to wait for a CPU.
                    let limit = wait.now() + Duration::from_secs(60);
                    wait.wait(Some(limit), &mut ready).unwrap();
                    assert!(wait.now() < limit, "a wake-up was lost at {value}");
                }
            }
        };
        let other = std::thread::spawn(move || play(&mut second, &to_here, &peer_ball, 1));
        play(&mut first, &to_there, &ball, 0);
        other.join().unwrap();
    }
}

#[test]
fn no_wake_up_is_lost_under_stress() {
    wake_alternately(10_000);
}

mod full {
    #[test]
    fn no_wake_up_is_lost_in_a_hundred_thousand() {
        super::wake_alternately(100_000);
    }
}

#[test]
fn reserved_tokens_are_refused() {
    let mut wait = EpollWait::new().unwrap();
    let (reader, _writer) = pipe();
    for token in [TOKEN_WAKER, TOKEN_TIMER] {
        let error = wait.watch(reader.as_fd(), token).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}

#[test]
fn cpu_time_counts_work_and_not_sleep() {
    let mut wait = EpollWait::new().unwrap();
    let start = wait.cpu_time();
    wait.wait(after(&wait, Duration::from_millis(50)), &mut Vec::new()).unwrap();
    let slept = wait.cpu_time() - start;
    assert!(slept < Duration::from_millis(25), "sleeping cost {slept:?}");
    while wait.cpu_time() - start < Duration::from_millis(30) {}
}
