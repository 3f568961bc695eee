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

fn error(message: &str) -> Result<(), ApiError> {
    Err(ApiError::new(ErrorCode::HostError, message))
}

/// Returns the size of the details of all operations in the table.
fn listed_bytes(table: &Operations) -> usize {
    table.list().iter().map(details::detail_bytes).sum()
}

fn counted_bytes(table: &Operations) -> usize {
    table.lock().detail_bytes
}

#[test]
fn details_of_the_oldest_ended_operations_are_dropped_beyond_their_bound() {
    let table = table();
    // It ends last, so that its report is the newest.
    let long = table.add("disk check", "disk/a", false).unwrap();
    let report = || vec!["x".repeat(1 << 20)];
    for number in 0..30 {
        let handle = table.add("disk check", "disk/b", false).unwrap();
        handle.set_plan(&Plan::default(), 2);
        handle.set_report(report());
        handle.end(&if number % 2 == 0 { Ok(()) } else { error("a block is damaged") });
        // A report after the end would not be counted.
        handle.set_report(vec![String::new()]);
    }
    long.set_report(report());
    long.end(&Ok(()));
    assert!(listed_bytes(&table) <= DETAIL_BYTES_MAX);
    assert_eq!(counted_bytes(&table), listed_bytes(&table));
    let is_complete =
        |operation: &Operation| !operation.details_dropped && operation.report == report();
    assert!(is_complete(&table.find(long.id()).unwrap()));
    let list = table.list();
    let dropped = list.iter().filter(|operation| operation.details_dropped).count();
    assert_eq!((list.len(), dropped), (31, 16), "15 reports of 1 MiB fit into 16 MiB");
    for operation in &list[1..=dropped] {
        assert!(operation.details_dropped && operation.plan.is_none());
        assert!(operation.report.is_empty() && operation.ended_unix_ms.is_some());
        assert_eq!(operation.error.is_some(), operation.state == OperationState::Failed);
    }
    assert!(list[dropped + 1..].iter().all(is_complete));
}

#[test]
fn long_errors_are_shortened_and_count_as_details() {
    let table = table();
    for _ in 0..OPERATIONS_MAX {
        let handle = table.add("apply", "host", true).unwrap();
        handle.end(&error(&"ä".repeat(16 << 10)));
    }
    assert!(listed_bytes(&table) <= DETAIL_BYTES_MAX);
    let list = table.list();
    assert_eq!(list.len(), OPERATIONS_MAX);
    let message = |operation: &Operation| operation.error.clone().unwrap().message;
    assert!(message(&list[0]).len() <= 4 << 10 && message(&list[0]).ends_with('…'));
    assert!(list[0].details_dropped && !list[OPERATIONS_MAX - 1].details_dropped);
    assert_eq!(message(&list[OPERATIONS_MAX - 1]).len(), 32 << 10);
    // Operations that are removed are not counted any more.
    for _ in 0..OPERATIONS_MAX {
        table.add("apply", "host", true).unwrap().end(&Ok(()));
    }
    assert_eq!(counted_bytes(&table), listed_bytes(&table));
}

/// A failed operation that is repeated would displace others otherwise.
#[test]
fn an_operation_that_has_ended_can_be_removed() {
    let table = table();
    let handle = table.add("qos policy adopt", "cluster", true).unwrap();
    let id = handle.id();
    table.remove_ended(id);
    assert_eq!(table.state(id), Some(OperationState::Running), "it is in progress");
    handle.end(&Err(ApiError::new(ErrorCode::HostError, "the disk is full")));
    assert_eq!(table.state(id), Some(OperationState::Failed));
    table.remove_ended(id);
    assert_eq!((table.state(id), counted_bytes(&table)), (None, 0));
    // The handle is dropped later.
    drop(handle);
    assert!(table.list().is_empty());
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
