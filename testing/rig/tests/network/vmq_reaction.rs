//! Dynamic VMQ with real guests: how soon it reacts to a load that comes and goes, and that
//! it leaves queues alone under a load that stays as it is: one that a processor can carry, and
//! one that all CPUs together cannot.

use std::thread;
use std::time::Duration;

use suimon_rig::{LoadedHost, Rig};

const PROCESSORS: u16 = 4;
/// From a load step to the first queue on another processor.
const SPREAD_PROMISE: Duration = Duration::from_secs(2);
/// From the end of the load to all queues on one processor.
const PACK_PROMISE: Duration = Duration::from_secs(10);
/// Of load: longer than the promise, so that packing has more than one processor to empty.
const LOADED: Duration = Duration::from_secs(5);
/// From each guest. Together they take a fraction of a processor.
const STEADY_BPS: u64 = 8_000_000;
const STEADY: Duration = Duration::from_secs(25);
/// In [`STEADY`]: one a minute.
const STEADY_MOVES_MAX: usize = 1;

/// More than the guests leave CPUs for.
const MANY_PROCESSORS: u16 = 8;
/// From the beginning of a load that never ends, in which queues may be moved as it takes.
const SETTLED: Duration = Duration::from_secs(10);
const OVERLOADED: Duration = Duration::from_secs(60);
/// In [`OVERLOADED`], which two rests may end: a queue and one that follows it, each time.
/// That others take the CPUs for a while is a change of the load. Without rests it is 15.
const OVERLOADED_MOVES_MAX: usize = 4;

/// How many processors `suimon vmq show` tells to be in use and how many to be parked.
fn used_and_parked(host: &LoadedHost) -> (usize, usize) {
    let shown = host.daemon().ok(&["vmq", "show", "up"]).unwrap();
    println!("{shown}");
    let count = |state: &str| shown.lines().filter(|line| line.contains(state)).count();
    (count(" in use "), count(" parked "))
}

#[test]
fn queues_spread_after_a_load_step_and_are_packed_after_its_end() {
    let rig = Rig::new().unwrap();
    let host = LoadedHost::new(&rig, PROCESSORS).unwrap();
    assert_eq!(used_and_parked(&host), (1, 3));

    let load = host.load(&rig, None).unwrap();
    let spread = host.spread(&load).unwrap();
    println!("spread after {spread:?}");
    assert!(spread < SPREAD_PROMISE, "spread after {spread:?}");
    thread::sleep(LOADED);
    let (used, parked) = used_and_parked(&host);
    assert!(used >= 2 && used + parked == 4, "{used} in use, {parked} parked");
    // What happened is told by event, and by the queue it happened to.
    let moved = host.moves_since(load.began).unwrap();
    println!("{moved:#?}");
    let queue = &moved[0];
    assert!(queue.because.starts_with("the processor was "), "{queue:?}");
    let explained: Vec<String> = ["vm0", "vm1", "vm2", "vm3"]
        .map(|nic| host.daemon().ok(&["vmq", "explain", nic]).unwrap())
        .into();
    println!("{explained:?}");
    assert!(explained.iter().any(|said| said.contains("it came from processor ")));

    let ended = host.end(load).unwrap();
    let pack = host.pack(ended).unwrap();
    println!("packed after {pack:?}");
    assert_eq!(used_and_parked(&host), (1, 3));
    assert!(pack < PACK_PROMISE, "packed after {pack:?}");
}

#[test]
fn a_steady_load_that_a_processor_carries_moves_no_queue() {
    let rig = Rig::new().unwrap();
    let host = LoadedHost::new(&rig, PROCESSORS).unwrap();
    let load = host.load(&rig, Some(STEADY_BPS)).unwrap();
    thread::sleep(STEADY);
    let moved = host.moves_since(load.began).unwrap();
    used_and_parked(&host);
    println!("{} moves in {STEADY:?}: {moved:#?}", moved.len());
    assert!(moved.len() <= STEADY_MOVES_MAX, "{moved:#?}");
    // That it went on all the time.
    host.end(load).unwrap();
}

#[test]
fn overload_that_goes_on_moves_queues_only_at_first() {
    let rig = Rig::new().unwrap();
    let host = LoadedHost::new(&rig, MANY_PROCESSORS).unwrap();
    let load = host.load(&rig, None).unwrap();
    thread::sleep(SETTLED + OVERLOADED);
    let moved = host.moves_since(load.began).unwrap();
    let settled = load.began + SETTLED.as_millis() as u64;
    let late = moved.iter().filter(|of| of.at >= settled).count();
    for of in &moved {
        let at_s = Duration::from_millis(of.at - load.began).as_secs_f64();
        println!("after {at_s:.1} s {} {:?}: {}", of.queue, of.processors, of.because);
    }
    println!("{late} of {} moves after {SETTLED:?}", moved.len());
    used_and_parked(&host);
    assert!(!moved.is_empty());
    assert!(late <= OVERLOADED_MOVES_MAX, "{late} late moves");
    // That it went on all the time.
    host.end(load).unwrap();
}
