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

fn late<T>(result: Result<T, Unanswered<T>>) -> StoreWork<T> {
    match result {
        Err(Unanswered::Late(work)) => work,
        Err(Unanswered::Never(error)) => panic!("{error}"),
        Ok(_) => panic!("it has answered"),
    }
}

#[test]
fn threads_are_bounded_and_places_come_back() {
    let threads = StoreThreads::default();
    let mut waiting = Vec::new();
    for store in 0..THREADS_MAX {
        let (gate, work) = gated();
        let path = PathBuf::from(format!("/srv/{store}"));
        waiting.push((gate, late(threads.run(&path, Duration::ZERO, work, drop))));
    }
    let one_more = || threads.run(Path::new("/srv/more"), PATIENCE, || 7, drop);
    let Err(Unanswered::Never(error)) = one_more() else { panic!("one too many") };
    assert!(error.message.contains("64 threads"), "{error}");
    drop(waiting);
    wait_until("a place", || matches!(one_more(), Ok(7)));
    wait_until("all of them", || threads.lock().silent.is_empty());
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_thread_that_dies_is_told_of_and_leaves_nothing() {
    let threads = StoreThreads::default();
    let store = Path::new("/srv/one");
    let died = threads.run(store, PATIENCE, || panic!("a test of what a defect does"), |()| ());
    let Err(Unanswered::Never(error)) = died else { panic!("it has answered") };
    assert_eq!(error.code, ErrorCode::Internal);
    wait_until("its place", || threads.lock().running == 0);
}

#[test]
fn a_store_is_silent_only_after_its_time_and_until_it_answers() {
    let threads = StoreThreads::default();
    let store = Path::new("/srv/one");
    let (gate, work) = gated();
    let first = late(threads.run(store, Duration::ZERO, work, drop));
    // A late operation younger than `SILENT_AFTER` does not make the store silent.
    assert!(matches!(threads.run(store, PATIENCE, || 7, drop), Ok(7)));
    let first = late(first.wait(SILENT_AFTER));
    assert!(first.is_stalled());
    let began = Instant::now();
    let refused = threads.run(store, PATIENCE, || 7, drop);
    let Err(Unanswered::Never(error)) = refused else { panic!("it is silent") };
    assert!(error.message.contains("has not responded for"), "{error}");
    assert!(matches!(threads.run(Path::new("/srv/two"), PATIENCE, || 7, drop), Ok(7)));
    assert!(began.elapsed() < PATIENCE);
    drop(gate);
    assert!(first.wait(PATIENCE).is_ok());
    wait_until("it answers", || matches!(threads.run(store, PATIENCE, || 7, drop), Ok(7)));
}

#[test]
fn what_comes_of_work_that_was_given_up_is_taken_back() {
    let threads = StoreThreads::default();
    let store = Path::new("/srv/one");
    let (gate, wait) = gated();
    let (told, taken_back) = channel();
    let work = late(threads.run(
        store,
        Duration::ZERO,
        move || {
            wait();
            told
        },
        |told: Sender<u8>| {
            let _ = told.send(7);
        },
    ));
    drop(work);
    drop(gate);
    assert_eq!(taken_back.recv(), Ok(7));
}
