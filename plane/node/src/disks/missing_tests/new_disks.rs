//! New disks, which have had no image: their images are created, also by a later daemon.

use super::*;

#[test]
fn new_disks_of_an_edited_host_file_are_created_and_others_are_not() {
    let (harness, _) = restarted_without(with_data(), &["boot.raw"]);
    let mut config = two_disks();
    config.disks[1].file = Some("moved.vhdx".parse().unwrap());
    config.disks.extend(host(&format!("{}{}", stores(), disk("added", "raw"))).disks);
    apply_at_start(&harness, &config);
    assert_eq!(state(&harness, "added"), StorageState::Ready);
    assert_missing(&harness, "boot", "/srv/fast/boot.raw");
    assert_missing(&harness, "data", "/srv/fast/moved.vhdx");
    assert_eq!(harness.disks.files(DISK_STORE), ["added.raw", "data.vhdx"]);
    assert!(harness.store.keys(NEW_DISKS).is_empty());
}

#[test]
fn a_new_disk_whose_store_is_missing_is_created_when_the_store_is_there() {
    for restarts in [false, true] {
        let mut harness = Harness::new();
        apply_at_start(&harness, &two_disks());
        assert_eq!(state(&harness, "boot"), StorageState::Failed);
        assert_eq!(harness.store.keys(NEW_DISKS), ["boot", "data"]);
        if restarts {
            let (store, devices, disks) = harness.kill_with_disks();
            harness = Harness::with_disks(store, devices, disks);
        }
        harness.disks.put_store(DISK_STORE, MemoryFiles::default());
        wait_until("the disks are in service", || harness.disks.served_counts().0 == 2);
        harness.wait_events(EventKind::DiskFileMade.id(), 2);
        assert!(harness.store.keys(NEW_DISKS).is_empty());
        let (harness, _) = restarted_without(harness, &["boot.raw"]);
        assert_missing(&harness, "boot", "/srv/fast/boot.raw");
    }
}

#[test]
fn a_new_disk_stays_new_under_another_file_and_its_record_goes_with_it() {
    let harness = Harness::new();
    apply_at_start(&harness, &two_disks());
    harness.apply_ok(&host(&format!("{}{}", stores(), disk("boot", "raw"))));
    assert_eq!(harness.store.keys(NEW_DISKS), ["boot"]);
    harness.disks.put_store(OTHER_STORE, MemoryFiles::default());
    // A change that is rolled back restores the record.
    harness.disks.refuse("/run/refused.sock", true);
    let patch = r#"{"store": "other", "nbd": {"socket": "/run/refused.sock"}}"#;
    assert_eq!(set(&harness, "boot", patch, false).state, OperationState::Failed);
    assert_eq!(harness.store.keys(NEW_DISKS), ["boot"]);
    assert!(harness.disks.files(OTHER_STORE).is_empty());
    let operation = set(&harness, "boot", r#"{"store": "other"}"#, false);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_eq!(harness.disks.files(OTHER_STORE), ["boot.raw"]);
    assert!(harness.store.keys(NEW_DISKS).is_empty());
    harness.apply_ok(&HostConfig::default());
    assert!(harness.store.keys(NEW_DISKS).is_empty());
}

#[test]
fn a_new_disk_with_a_faulty_image_is_not_new_any_more() {
    let harness = Harness::with_store();
    let files = harness.disks.store(DISK_STORE);
    drop(StoreFiles::create(&files, &file("data.vhdx"), 512).unwrap());
    apply_at_start(&harness, &two_disks());
    assert_eq!(state(&harness, "boot"), StorageState::Ready);
    assert_eq!(state(&harness, "data"), StorageState::Failed);
    assert!(harness.store.keys(NEW_DISKS).is_empty());
    StoreFiles::remove(&files, &file("data.vhdx")).unwrap();
    let is_missing = || {
        let reason = harness.node.disk("data").unwrap().reason;
        reason.is_some_and(|reason| reason.contains("is missing"))
    };
    wait_until("the retry has failed", is_missing);
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw"]);
}

/// The image is created and removed at each attempt.
#[test]
fn a_new_disk_that_cannot_be_offered_stays_new() {
    let harness = Harness::new();
    harness.disks.refuse("/run/boot.sock", true);
    apply_at_start(&harness, &two_disks());
    harness.disks.put_store(DISK_STORE, MemoryFiles::default());
    wait_until("the other disk is in service", || state(&harness, "data") == StorageState::Ready);
    let is_refused = || {
        let reason = harness.node.disk("boot").unwrap().reason;
        reason.is_some_and(|reason| reason.contains("nbd"))
    };
    wait_until("the retry has failed", is_refused);
    let is_new = || harness.store.keys(NEW_DISKS) == ["boot"];
    wait_until("the disk is recorded", || {
        is_new() && harness.disks.files(DISK_STORE) == ["data.vhdx"]
    });
    harness.disks.refuse("/run/boot.sock", false);
    wait_until("the disk is in service", || state(&harness, "boot") == StorageState::Ready);
    assert!(harness.store.keys(NEW_DISKS).is_empty());
}

/// Otherwise the next daemon would take the disk for a new one.
#[test]
fn a_new_disk_is_not_in_service_before_its_record_is_deleted() {
    let harness = Harness::new();
    apply_at_start(&harness, &two_disks());
    harness.store.set_full(true);
    harness.disks.put_store(DISK_STORE, MemoryFiles::default());
    let is_refused = || {
        let reason = harness.node.disk("boot").unwrap().reason;
        reason.is_some_and(|reason| reason.contains("the disk is full"))
    };
    wait_until("the retry has failed", is_refused);
    assert_eq!(harness.disks.served_counts(), (0, 0));
    harness.store.set_full(false);
    wait_until("the disks are in service", || harness.disks.served_counts().0 == 2);
    assert!(harness.store.keys(NEW_DISKS).is_empty());
}
