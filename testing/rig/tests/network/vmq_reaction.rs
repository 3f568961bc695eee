//! Dynamic VMQ with real guests: it spreads queues after a load has started, packs them after its
//! end, and does not move them under a constant load, whether one worker can carry it or all CPUs
//! together cannot.
//!
//! The time and number of moves depend on the CPU time that the workers get, so these tests print
//! them. The specified limits are tested in virtual time (`policy/vmq`).

use std::thread;
use std::time::Duration;

use suimon_rig::{LoadedHost, Rig, wait_until};

const WORKERS: u16 = 4;
/// Deadline of every condition.
const LIMIT: Duration = Duration::from_secs(120);
/// Rate of each guest in bits per second. Together they need a fraction of a worker.
const STEADY_BPS: u64 = 8_000_000;
const STEADY: Duration = Duration::from_secs(25);

/// More workers than the guests leave CPUs for.
const MANY_WORKERS: u16 = 8;
/// Time from the start of a permanent load in which queues may be moved.
const SETTLED: Duration = Duration::from_secs(10);
const OVERLOADED: Duration = Duration::from_secs(60);

/// Returns the numbers of workers that `suimon vmq show` reports as in use and as parked.
fn used_and_parked(host: &LoadedHost) -> (usize, usize) {
    let output = host.daemon().ok(&["vmq", "show", "up"]).unwrap();
    println!("{output}");
    let count = |state: &str| output.lines().filter(|line| line.contains(state)).count();
    (count(" in use "), count(" parked "))
}

#[test]
fn queues_spread_after_a_load_step_and_are_packed_after_its_end() {
    let rig = Rig::new().unwrap();
    let host = LoadedHost::new(&rig, WORKERS).unwrap();
    assert_eq!(used_and_parked(&host), (1, 3));

    let load = host.load(&rig, None).unwrap();
    let spread = host.spread(&load).unwrap();
    println!("spread after {spread:?}");
    let mut usage = (0, 0);
    wait_until("queues on two workers", LIMIT, || {
        usage = used_and_parked(&host);
        Ok(usage.0 >= 2)
    })
    .unwrap();
    assert_eq!(usage.0 + usage.1, 4, "in use and parked");
    // A move is reported by an event, and by `vmq explain` for the queue.
    let moved = host.moves_since(load.began).unwrap();
    println!("{moved:#?}");
    let queue = &moved[0];
    assert!(queue.because.starts_with("the worker was "), "{queue:?}");
    let mut explained = Vec::new();
    wait_until("the explanation of a moved queue", LIMIT, || {
        let names = ["vm0", "vm1", "vm2", "vm3", "up"];
        let outputs = names.map(|name| host.daemon().cli(&["vmq", "explain", name]));
        explained = outputs.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        Ok(explained.iter().any(|output| output.stdout.contains("moved from worker ")))
    })
    .unwrap_or_else(|error| panic!("{error:#}: {explained:?}"));

    let ended_at = host.end(load).unwrap();
    let pack = host.pack(ended_at).unwrap();
    println!("packed after {pack:?}");
    assert_eq!(used_and_parked(&host), (1, 3));
}

mod full {
    use super::*;

    #[test]
    fn a_steady_load_that_a_worker_carries_moves_no_queue() {
        let rig = Rig::new().unwrap();
        let host = LoadedHost::new(&rig, WORKERS).unwrap();
        let load = host.load(&rig, Some(STEADY_BPS)).unwrap();
        thread::sleep(STEADY);
        let moved = host.moves_since(load.began).unwrap();
        used_and_parked(&host);
        println!("{} moves in {STEADY:?}: {moved:#?}", moved.len());
        // Fails if the load did not last all the time.
        host.end(load).unwrap();
    }

    #[test]
    fn sustained_overload_moves_queues_only_at_first() {
        let rig = Rig::new().unwrap();
        let host = LoadedHost::new(&rig, MANY_WORKERS).unwrap();
        let load = host.load(&rig, None).unwrap();
        thread::sleep(SETTLED + OVERLOADED);
        let moved = host.moves_since(load.began).unwrap();
        let settled_ms = load.began + SETTLED.as_millis() as u64;
        let late_count = moved.iter().filter(|queue_move| queue_move.at >= settled_ms).count();
        for queue_move in &moved {
            let at_s = Duration::from_millis(queue_move.at - load.began).as_secs_f64();
            println!(
                "after {at_s:.1} s {} {:?}: {}",
                queue_move.queue, queue_move.workers, queue_move.because
            );
        }
        println!("{late_count} of {} moves after {SETTLED:?}", moved.len());
        used_and_parked(&host);
        assert!(!moved.is_empty());
        // Fails if the load did not last all the time.
        host.end(load).unwrap();
    }
}
