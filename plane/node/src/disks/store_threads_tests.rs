use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::testing::wait_until;

/// Returns an operation that blocks until its gate is dropped.
fn gated() -> (Sender<()>, impl FnOnce() + Send + 'static) {
    let (gate, closed): (_, Receiver<()>) = channel();
    (gate, move || {
        let _ = closed.recv();
    })
}

fn late<T>(result: Result<T, StoreOperationError<T>>) -> PendingStoreOperation<T> {
    match result {
        Err(StoreOperationError::TimedOut(work)) => work,
        Err(StoreOperationError::Failed(error)) => panic!("{error}"),
        Ok(_) => panic!("it has answered"),
    }
}

#[test]
fn threads_are_bounded_and_become_available_again() {
    let threads = StoreThreads::default();
    let mut waiting = Vec::new();
    for store in 0..THREADS_MAX {
        let (gate, work) = gated();
        let path = PathBuf::from(format!("/srv/{store}"));
        waiting.push((gate, late(threads.run(&path, Duration::ZERO, work, drop))));
    }
    let one_more = || threads.run(Path::new("/srv/more"), PATIENCE, || 7, drop);
    let Err(StoreOperationError::Failed(error)) = one_more() else { panic!("one too many") };
    assert!(error.message.contains("64 threads"), "{error}");
    drop(waiting);
    wait_until("a thread is available", || matches!(one_more(), Ok(7)));
    wait_until("no operation on a store is in progress or queued", || threads.lock().0.is_empty());
}

#[test]
fn one_store_leaves_threads_for_the_others() {
    let threads = StoreThreads::default();
    let (hung, responsive) = (Path::new("/srv/hung"), Path::new("/srv/good"));
    let mut waiting = Vec::new();
    for _ in 0..STORE_THREADS_MAX {
        let (gate, work) = gated();
        waiting.push((gate, late(threads.run(hung, Duration::ZERO, work, drop))));
    }
    let Err(StoreOperationError::Failed(error)) = threads.run(hung, PATIENCE, || 7, drop) else {
        panic!("one too many")
    };
    assert!(error.message.contains("32 threads wait for this store"), "{error}");
    assert!(matches!(threads.run(responsive, PATIENCE, || 7, drop), Ok(7)));
    // The threads of a silent store do not count for other stores.
    wait_until("the store is silent", || threads.check_responds(hung).is_err());
    assert_eq!(threads.lock().running_threads(), 0);
    drop(waiting);
    wait_until("no operation on a store is in progress or queued", || threads.lock().0.is_empty());
}

#[test]
fn a_store_is_silent_while_an_operation_that_no_caller_waits_for_is_late() {
    let threads = StoreThreads::default();
    let store = Path::new("/srv/one");
    let (gate, work) = gated();
    threads.start_detached(store, work).unwrap();
    wait_until("the store is silent", || threads.check_responds(store).is_err());
    assert!(threads.start_detached(store, || ()).is_err());
    drop(gate);
    wait_until("the store is not silent", || threads.check_responds(store).is_ok());
    wait_until("no operation on a store is in progress or queued", || threads.lock().0.is_empty());
}

/// Each operation takes less than [`STORE_TIMEOUT`]; at any time one of them is in progress.
#[test]
fn a_store_that_answers_each_operation_in_time_is_not_silent() {
    let threads = StoreThreads::default();
    let store = Path::new("/srv/one");
    let (mut gate, work) = gated();
    threads.start_detached(store, work).unwrap();
    let started = Instant::now();
    while started.elapsed() < STORE_TIMEOUT + Duration::from_secs(2) {
        let (next, work) = gated();
        threads.start_detached(store, work).unwrap();
        drop(std::mem::replace(&mut gate, next));
        std::thread::sleep(Duration::from_millis(200));
        threads.check_responds(store).unwrap();
    }
}

#[test]
fn eventual_operations_have_one_thread_per_store_and_make_it_silent() {
    let threads = StoreThreads::default();
    let store = Path::new("/srv/one");
    let (gate, hangs) = gated();
    let started = Instant::now();
    assert!(!threads.run_eventually(store, hangs));
    let (sender, receiver) = channel();
    for number in 0..20 {
        let sender = sender.clone();
        assert!(!threads.run_eventually(store, move || sender.send(number).unwrap()));
    }
    // Five waits of 2 s until the store is silent, and none afterwards. 21 waits would be 42 s.
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    assert!(threads.check_responds(store).is_err());
    assert_eq!(threads.lock().entry(store).queued.len(), 20);
    assert!(threads.run_eventually(Path::new("/srv/two"), || ()));
    drop(gate);
    let numbers: Vec<i32> = (0..20).map(|_| receiver.recv_timeout(PATIENCE).unwrap()).collect();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
    wait_until("the store responds", || threads.run_eventually(store, || ()));
}

#[test]
fn eventual_operations_survive_a_panic_and_a_lack_of_threads() {
    fn refuse(_: BoxedOperation) -> std::io::Result<()> {
        Err(std::io::Error::other("no thread is left"))
    }
    let store = Path::new("/srv/one");
    let short = StoreThreads { spawn: refuse, ..StoreThreads::default() };
    let (sender, receiver) = channel();
    let second_sender = sender.clone();
    assert!(!short.run_eventually(store, || panic!("a test of what a defect does")));
    assert!(!short.run_eventually(store, move || sender.send(1).unwrap()));
    assert!(short.run(store, PATIENCE, || 7, drop).is_err());
    let threads = StoreThreads { spawn: spawn_thread, ..short };
    threads.resume_queued();
    assert_eq!(receiver.recv_timeout(PATIENCE), Ok(1));
    threads.run_eventually(store, move || second_sender.send(2).unwrap());
    assert_eq!(receiver.recv_timeout(PATIENCE), Ok(2));
    wait_until("no operation on a store is in progress or queued", || threads.lock().0.is_empty());
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_panic_of_a_thread_is_reported_and_releases_its_slot() {
    let threads = StoreThreads::default();
    let store = Path::new("/srv/one");
    let result = threads.run(store, PATIENCE, || panic!("a test of what a defect does"), |()| ());
    let Err(StoreOperationError::Failed(error)) = result else { panic!("it has answered") };
    assert_eq!(error.code, ErrorCode::Internal);
    wait_until("no thread works on the store", || threads.running_on(store) == 0);
}

#[test]
fn a_store_is_silent_from_the_timeout_until_it_responds() {
    let threads = StoreThreads::default();
    let store = Path::new("/srv/one");
    let (gate, work) = gated();
    let first = late(threads.run(store, Duration::ZERO, work, drop));
    // A late operation younger than `STORE_TIMEOUT` does not make the store silent.
    assert!(matches!(threads.run(store, PATIENCE, || 7, drop), Ok(7)));
    let first = late(first.wait(STORE_TIMEOUT));
    assert!(first.is_stalled());
    let started = Instant::now();
    let rejection = threads.run(store, PATIENCE, || 7, drop);
    let Err(StoreOperationError::Failed(error)) = rejection else { panic!("it is silent") };
    assert!(error.message.contains("has not responded for"), "{error}");
    assert!(matches!(threads.run(Path::new("/srv/two"), PATIENCE, || 7, drop), Ok(7)));
    assert!(started.elapsed() < PATIENCE);
    drop(gate);
    assert!(first.wait(PATIENCE).is_ok());
    wait_until("the store responds", || matches!(threads.run(store, PATIENCE, || 7, drop), Ok(7)));
}

#[test]
fn the_result_of_an_abandoned_operation_is_undone() {
    let threads = StoreThreads::default();
    let store = Path::new("/srv/one");
    let (gate, wait) = gated();
    let (sender, taken_back) = channel();
    let work = late(threads.run(
        store,
        Duration::ZERO,
        move || {
            wait();
            sender
        },
        |sender: Sender<u8>| {
            let _ = sender.send(7);
        },
    ));
    drop(work);
    drop(gate);
    assert_eq!(taken_back.recv(), Ok(7));
}
