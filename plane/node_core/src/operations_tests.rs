use std::sync::atomic::AtomicU64;

use super::*;
use crate::NoListener;

fn table() -> Arc<Operations> {
    let ticks = AtomicU64::new(0);
    let clock = Arc::new(move || ticks.fetch_add(1, Ordering::Relaxed));
    Arc::new(Operations::new(clock, Arc::new(NoListener)))
}

#[test]
fn the_table_is_bounded_and_forgets_the_oldest_that_ended() {
    let table = table();
    let running = table.add("apply", "host", true).unwrap();
    running.begin();
    for _ in 0..OPERATIONS_MAX + 10 {
        let handle = table.add("nic add", "nic/a", true).unwrap();
        handle.begin();
        handle.end(&Ok(()));
    }
    let list = table.list();
    assert_eq!(list.len(), OPERATIONS_MAX);
    assert_eq!(list[0].id, running.id(), "operations in progress stay in the table");
    assert!(table.find(2).is_none());
}

#[test]
fn too_many_at_a_time_are_refused() {
    let table = table();
    let handles: Vec<_> =
        (0..RUNNING_MAX).map(|_| table.add("apply", "host", true).unwrap()).collect();
    assert_eq!(table.add("apply", "host", true).err().unwrap().code, ErrorCode::Conflict);
    drop(handles);
    assert!(table.add("apply", "host", true).is_ok());
}

#[test]
fn waiting_operations_are_cancelled_at_once_and_running_ones_at_their_next_step() {
    let table = table();
    let waiting = table.add("apply", "host", true).unwrap();
    assert_eq!(table.cancel(waiting.id()).unwrap().state, OperationState::Cancelled);
    assert!(!waiting.begin());

    let running = table.add("apply", "host", true).unwrap();
    assert!(running.begin());
    assert_eq!(table.cancel(running.id()).unwrap().state, OperationState::Running);
    let result = running.check_cancelled();
    running.end(&result);
    assert_eq!(table.find(running.id()).unwrap().state, OperationState::Cancelled);
    // Only the first end has an effect.
    running.end(&Ok(()));
    assert_eq!(table.find(running.id()).unwrap().state, OperationState::Cancelled);
    assert!(table.cancel(99).is_none());
}

#[test]
fn a_worker_that_dies_ends_its_operation() {
    let table = table();
    let handle = table.add("apply", "host", true).unwrap();
    let id = handle.id();
    let waiter = {
        let table = table.clone();
        std::thread::spawn(move || table.wait(id, Duration::from_secs(20)).unwrap())
    };
    handle.begin();
    drop(handle);
    let operation = waiter.join().unwrap();
    assert_eq!(operation.state, OperationState::Failed);
    assert_eq!(operation.error.unwrap().code, ErrorCode::Internal);
    assert!(!table.is_busy());
}

#[test]
fn captures_do_not_count_as_changes() {
    let table = table();
    let capture = table.add("nic capture", "nic/a", false).unwrap();
    capture.begin();
    assert!(!table.is_busy());
    let _change = table.add("apply", "host", true).unwrap();
    assert!(table.is_busy());
}
