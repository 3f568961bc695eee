//! Pending actions of a member, and the floor of a store without a leader.

use suimon_ports::StateStoreError;

use super::*;
use crate::testing::name;

fn durable_state(reserved_iops: u64) -> DurableState {
    let mut durable = DurableState::default();
    durable.store.reserved_iops = reserved_iops;
    durable
}

fn cap(reserved_iops: u64) -> StoreAction {
    StoreAction::ApplyLimits(
        TimedRateLimit { reserved_iops, ..TimedRateLimit::default() },
        Vec::new(),
    )
}

fn store() -> SharedStore {
    let durable = (DurableState::default(), Minimums::new());
    let mut store = SharedStore::new(Time::ZERO, (name("san"), StoreId(0)), durable, None);
    store.todo.clear();
    store
}

/// The state store refuses the reservation, for example because its file system is full.
#[test]
fn actions_of_a_member_whose_reservation_cannot_be_saved_do_not_accumulate() {
    let mut store = store();
    store.requeue_failed_action(StoreAction::SaveState(durable_state(1)));
    for index in 1..10_000 {
        let now = Time::ZERO + Duration::from_secs(10 * index);
        store.handle_loads(now, vec![pending_minimum_load(index)], 0);
        store.todo.push_back(StoreAction::NotifyMember(MemberNotice::LeaseObtained));
        store.todo.push_back(StoreAction::NotifyMember(MemberNotice::LeaseExpired));
        store.todo.push_back(cap(index));
        store.todo.push_back(StoreAction::SaveState(durable_state(index)));
        let failed = std::iter::from_fn(|| store.todo.pop_front())
            .find(|action| matches!(action, StoreAction::SaveState(_)));
        store.requeue_failed_action(failed.unwrap());
        assert!(store.todo.len() <= 8, "{} after {index}", store.todo.len());
    }
}

/// Nobody knows the capacity of a store, so that it has no leader.
#[test]
fn disks_of_a_store_without_capacity_and_leader_get_the_floor_after_a_time() {
    let mut store = store();
    let time = |seconds| Time::ZERO + Duration::from_secs(seconds);
    assert_eq!(store.take_capacity_change(), None, "its identity is not known yet");
    let iops = |now, store: &mut SharedStore| {
        store.update_floor(time(now));
        store.cap().iops_at(time(now))
    };
    assert_eq!(iops(100, &mut store), 0);
    store.is_identity_checked = true;
    assert_eq!(store.take_capacity_change(), Some(true));
    assert_eq!(store.take_capacity_change(), None);
    assert_eq!([101, 105, 106, 200].map(|now| iops(now, &mut store)), [0, 0, 64, 64]);
    // A node that knows the capacity is elected.
    store.handle_leader(time(214), Some(("n2".to_owned(), Term(1))));
    assert_eq!(iops(220, &mut store), 0);
    assert!(store.takes_part() && store.unavailable_reason().is_none());
    // It is lost.
    store.handle_leader(time(221), None);
    assert_eq!([221, 226].map(|now| iops(now, &mut store)), [0, 64]);
    // A reservation holds without a leader.
    store.durable = durable_state(64);
    assert_eq!(iops(227, &mut store), 0, "the member has the reservation");
    store.durable = DurableState::default();
    store.capacity = Some(SharedStoreCapacity::Measured(1000));
    assert_eq!(iops(300, &mut store), 0);
    assert_eq!(store.take_capacity_change(), Some(false));
    assert_eq!(store.take_capacity_change(), None);
}

/// No report is sent before the state that it describes is durable and in effect.
#[test]
fn the_newest_state_is_saved_then_applied_then_reported() {
    let mut store = store();
    store.handle_loads(Time::ZERO + Duration::from_secs(10), vec![pending_minimum_load(1)], 0);
    let report = store.todo.pop_back().unwrap();
    let StoreAction::WriteReport(first) = report else { panic!("no report is due") };
    let report_number = |number| {
        let mut report = first.clone();
        report.id.number = number;
        StoreAction::WriteReport(report)
    };
    store.todo.extend([
        cap(1),
        report_number(1),
        cap(2),
        StoreAction::SaveState(durable_state(2)),
        report_number(2),
        report_number(3),
    ]);
    store.requeue_failed_action(StoreAction::SaveState(durable_state(1)));
    let mut order = Vec::new();
    while let Some(action) = store.todo.pop_front() {
        order.push(match action {
            StoreAction::SaveState(durable) => format!("keep {}", durable.store.reserved_iops),
            StoreAction::ApplyLimits(cap, _) => format!("apply {}", cap.reserved_iops),
            StoreAction::WriteReport(report) => format!("send {}", report.id.number),
            StoreAction::NotifyMember(_) => "notice".to_owned(),
        });
    }
    assert_eq!(order, ["keep 2", "apply 2", "send 3"]);
    // A report before the newest state is not sent at all; the next one follows soon.
    store.todo.extend([report_number(4), cap(3)]);
    store.requeue_failed_action(StoreAction::SaveState(durable_state(3)));
    assert!(!store.todo.iter().any(|action| matches!(action, StoreAction::WriteReport(_))));
    assert_eq!(store.todo.len(), 2);
}

/// What is in effect survives a crash of the daemon, so that it must be durable first.
#[test]
fn a_share_that_cannot_be_saved_is_not_in_effect() {
    let mut store = store();
    store.todo.clear();
    let before = store.cap();
    store.todo.push_back(StoreAction::SaveState(durable_state(500)));
    store.todo.push_back(cap(500));
    let failed = store.poll_member().unwrap();
    store.requeue_failed_action(failed);
    assert_eq!(store.cap(), before);
    assert!(matches!(store.poll_member(), Some(StoreAction::SaveState(_))));
    assert!(matches!(store.poll_member(), Some(StoreAction::ApplyLimits(..))));
    assert_eq!(store.cap().reserved_iops, 500);
}

/// The driver attempts to save the reservation in each iteration.
#[test]
fn a_reservation_that_cannot_be_saved_is_reported_once_until_the_failure_changes() {
    let mut store = store();
    let mut attempt = |result: Result<(), &str>| {
        let saved = result.map_err(StateStoreError::new);
        let event = store.handle_save_result(durable_state(500), saved);
        let is_pending = matches!(store.poll_member(), Some(StoreAction::SaveState(_)));
        assert_eq!(is_pending, result.is_err());
        event.map(|event| event.text)
    };
    let text = attempt(Err("the disk is full")).unwrap();
    assert!(text.contains("reservation") && text.contains("the disk is full"), "{text}");
    assert!((0..100).all(|_| attempt(Err("the disk is full")).is_none()));
    assert!(attempt(Err("read-only file system")).unwrap().contains("read-only"));
    assert_eq!(attempt(Ok(())), None);
    assert!(attempt(Err("read-only file system")).is_some());
}
