//! Exhaustive search of the interleavings of wakers and a sleeper.

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use shuttle::sync::{Condvar, Mutex};

use super::*;

struct ModelCell(AtomicU8);

impl Default for ModelCell {
    fn default() -> Self {
        Self(AtomicU8::new(AWAKE))
    }
}

impl Cell for ModelCell {
    fn swap(&self, value: u8) -> u8 {
        self.0.swap(value, Ordering::AcqRel)
    }

    fn replace(&self, current: u8, value: u8) -> bool {
        self.0.compare_exchange(current, value, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// Model of an eventfd: readable from the first write until it is drained.
#[derive(Default)]
struct Eventfd {
    readable: Mutex<bool>,
    changed: Condvar,
}

impl Eventfd {
    fn kick(&self) {
        *self.readable.lock().unwrap() = true;
        self.changed.notify_one();
    }

    fn sleep_and_drain(&self) {
        let mut readable = self.readable.lock().unwrap();
        while !*readable {
            readable = self.changed.wait(readable).unwrap();
        }
        *readable = false;
    }
}

#[derive(Default)]
struct Model {
    flag: SleepFlag<ModelCell>,
    fd: Eventfd,
}

/// Checks that a sleeper sees messages posted before a wake when it checks its inbox and then
/// waits. A lost wake-up leaves the sleeper asleep, which the checker reports as a deadlock.
fn messages_arrive(wakers: u64) {
    let model = Arc::new(Model::default());
    let inbox = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..wakers)
        .map(|_| {
            let (model, inbox) = (Arc::clone(&model), Arc::clone(&inbox));
            shuttle::thread::spawn(move || {
                inbox.fetch_add(1, Ordering::Release);
                if model.flag.notify() {
                    model.fd.kick();
                }
            })
        })
        .collect();
    while inbox.load(Ordering::Acquire) < wakers {
        if model.flag.fall_asleep() {
            model.fd.sleep_and_drain();
            model.flag.wake_up();
        }
    }
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn no_interleaving_with_one_waker_loses_a_wake_up() {
    shuttle::check_dfs(|| messages_arrive(1), None);
}

#[test]
fn no_interleaving_with_two_wakers_loses_a_wake_up() {
    // The full tree is large; this search covers its first part and random walks the rest.
    shuttle::check_dfs(|| messages_arrive(2), Some(20_000));
    shuttle::check_random(|| messages_arrive(2), 20_000);
}

/// Checks a protocol with the fault that the real one avoids: the sleeper enters the kernel without
/// checking for a notification. The checker must detect it, otherwise the other tests prove
/// nothing.
#[test]
#[should_panic(expected = "deadlock")]
fn the_check_finds_a_sleeper_that_does_not_look() {
    shuttle::check_dfs(
        || {
            let model = Arc::new(Model::default());
            let posted = Arc::new(AtomicBool::new(false));
            let waker = {
                let (model, posted) = (Arc::clone(&model), Arc::clone(&posted));
                shuttle::thread::spawn(move || {
                    posted.store(true, Ordering::Release);
                    if model.flag.notify() {
                        model.fd.kick();
                    }
                })
            };
            while !posted.load(Ordering::Acquire) {
                model.flag.fall_asleep();
                model.fd.sleep_and_drain();
                model.flag.wake_up();
            }
            waker.join().unwrap();
        },
        None,
    );
}
