use std::time::{Duration, Instant};

use suimon_contract::{ByteSize, DiskOnFull, EventKind, HostConfig, StorageState};
use suimon_ports::testing::MemoryStore as MemoryFiles;
use suimon_storage_engine::FullStorePolicy;

use crate::testing::{DISK_STORE, Harness, host, wait_until};

fn one_disk() -> HostConfig {
    host(
        r#"
        [[store]]
        name = "fast"
        path = "/srv/fast"
        [[disk]]
        name = "boot"
        store = "fast"
        format = "raw"
        size_bytes = 1048576
        full_wait_s = 7
        nbd = { socket = "/run/nbd.sock" }
        "#,
    )
}

#[test]
fn a_disk_on_a_full_store_is_shown_and_reported_until_there_is_space() {
    let harness = Harness::with_store();
    harness.apply_ok(&one_disk());
    harness.disks.fill(Some(3));
    let event = harness.wait_event(EventKind::DiskFull.id());
    assert!(event.text.starts_with("Store fast is full."), "{}", event.text);
    assert!(event.text.contains("queued"), "{}", event.text);
    let status = harness.node.disk("boot").unwrap();
    assert_eq!(status.state, StorageState::Full);
    let reason = status.reason.unwrap();
    assert!(reason.contains("full for 2 s") && reason.contains("queued (3)"), "{reason}");
    let full = status.store_full.unwrap();
    assert_eq!((full.queued_requests, full.full_for_ms), (3, 2000));
    harness.disks.fill(None);
    let event = harness.wait_event(EventKind::DiskHasSpace.id());
    assert_eq!(event.fields["lasted_s"], "2");
    assert_eq!(event.text, "Store fast has space for requests of the disk again.");
    assert_eq!(harness.node.disk("boot").unwrap().state, StorageState::Ready);
}

#[test]
fn a_disk_that_needs_no_space_any_more_does_not_report_its_store_as_usable() {
    let harness = Harness::with_store();
    harness.apply_ok(&one_disk());
    harness.disks.fill(Some(0));
    harness.wait_event(EventKind::DiskFull.id());
    harness.disks.need_no_space();
    let event = harness.wait_event(EventKind::DiskHasSpace.id());
    assert!(event.text.ends_with("The store may still be full."), "{}", event.text);
    assert_eq!(harness.node.disk("boot").unwrap().state, StorageState::Ready);
}

#[test]
fn a_store_that_is_full_again_and_again_does_not_fill_the_event_log() {
    let harness = Harness::with_store();
    harness.apply_ok(&one_disk());
    let event_count = || {
        let kinds = [EventKind::DiskFull, EventKind::DiskHasSpace];
        kinds.map(|kind| harness.events(kind.id()).len()).iter().sum::<usize>()
    };
    let began = Instant::now();
    for _ in 0..40 {
        harness.disks.fill(Some(1));
        harness.disks.fill(None);
    }
    wait_until("ten events are emitted", || event_count() >= 10);
    // A change is executed after the notices that precede it.
    let mut changed = one_disk();
    changed.disks[0].full_wait_s = 8;
    harness.apply_ok(&changed);
    // At maximum 12 in 10 s, however long the test takes.
    let maximum = 12 * (1 + began.elapsed().as_secs() as usize / 10);
    assert!(event_count() <= maximum, "{} events, at maximum {maximum}", event_count());
}

#[test]
fn the_full_store_policy_changes_while_the_disk_is_in_service() {
    let harness = Harness::with_store();
    let mut config = one_disk();
    harness.apply_ok(&config);
    let wait =
        |seconds| FullStorePolicy { ring_wait: None, client_wait: Duration::from_secs(seconds) };
    assert_eq!(harness.disks.full_policies(), [wait(7)]);
    config.disks[0].full_wait_s = 0;
    harness.apply_ok(&config);
    assert_eq!(harness.disks.full_policies(), [wait(0)]);
    config.disks[0].on_full = DiskOnFull::Error;
    harness.apply_ok(&config);
    assert_eq!(harness.disks.full_policies(), [FullStorePolicy::FAIL_AT_ONCE]);
    let (requests, _) = harness.disks.served_counts();
    assert_eq!(requests, 1);
    harness.disks.fill(Some(0));
    let event = harness.wait_event(EventKind::DiskFull.id());
    assert!(event.text.contains("fail, because `on_full` is `error`"), "{}", event.text);
}

#[test]
fn a_store_shows_the_sizes_of_its_disks_and_warns_before_it_is_full() {
    let harness = Harness::with_store();
    let mut config = one_disk();
    config.disks[0].size_bytes = Some(ByteSize::new(1 << 20));
    harness.apply_ok(&config);
    let store = || harness.node.store("fast").unwrap();
    assert_eq!(store().virtual_bytes, 1 << 20);
    // The space is unknown in the status if its query takes longer than 200 ms.
    wait_until("the store's space is shown", || {
        let store = store();
        store.overcommit_percent == Some(1) && !store.nearly_full
    });
    // The store in memory reports either all of its bytes as free or none.
    harness.disks.store(DISK_STORE).set_change_limit(Some(0));
    wait_until("the store is shown as nearly full", || store().nearly_full);
    let event = harness.wait_event(EventKind::StoreNearlyFull.id());
    assert_eq!(
        (event.subject.as_str(), event.fields["used_percent"].as_str()),
        ("store/fast", "100")
    );
    harness.disks.store(DISK_STORE).set_change_limit(None);
    wait_until("StoreHasSpace is emitted", || {
        !harness.events(EventKind::StoreHasSpace.id()).is_empty()
    });
    assert_eq!(harness.events(EventKind::StoreNearlyFull.id()).len(), 1);
}

#[test]
fn a_store_whose_directory_vanishes_is_reported_until_it_is_there_again() {
    let harness = Harness::with_store();
    // A store without disks has no other event.
    let stores = "[[store]]\nname = \"fast\"\npath = \"/srv/fast\"\n\
                  [[store]]\nname = \"other\"\npath = \"/srv/other\"\n";
    harness.disks.put_store("/srv/other", MemoryFiles::default());
    harness.apply_ok(&host(stores));
    let failed = |name: &str| harness.node.store(name).unwrap().state == StorageState::Failed;
    let store = harness.disks.take_store(DISK_STORE);
    wait_until("the store is shown as failed", || failed("fast"));
    let event = harness.wait_event(EventKind::StoreFailed.id());
    assert_eq!(
        (event.subject.as_str(), event.fields["path"].as_str()),
        ("store/fast", "/srv/fast")
    );
    assert!(event.text.contains(&event.fields["reason"]), "{}", event.text);
    assert!(harness.events(EventKind::StoreRecovered.id()).is_empty());
    harness.disks.put_store(DISK_STORE, store);
    let event = harness.wait_event(EventKind::StoreRecovered.id());
    assert_eq!(event.subject, "store/fast");
    assert_eq!(harness.events(EventKind::StoreFailed.id()).len(), 1);
    // The status is unknown, too, if its query takes longer than 200 ms.
    wait_until("the other store is shown as ready", || !failed("other"));
}
