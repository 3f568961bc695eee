use suimon_contract::{
    ErrorCode, EventKind, HostConfig, OperationState, StorageState, StoreCapacity,
};

use suimon_ports::{FaultKind, QueueFault};
use suimon_quantity::DiskId;
use suimon_storage::{PlaneNotice, QueueKey};

use crate::testing::{DEADLINE, DISK_STORE, Harness, host, name, wait_until};
use crate::{ChangeOptions, Edit, ResourceEdit};

fn two_disks() -> HostConfig {
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
        vhost_user = { socket = "/run/boot.sock" }
        nbd = { socket = "/run/nbd.sock" }
        [[disk]]
        name = "data"
        store = "fast"
        format = "vhdx"
        size_bytes = 1048576
        nbd = { socket = "/run/nbd.sock" }
        "#,
    )
}

#[test]
fn disks_are_created_served_and_exported_and_their_files_remain() {
    let harness = Harness::with_store();
    harness.apply_ok(&two_disks());
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw", "data.vhdx"]);
    assert_eq!(harness.disks.served_counts(), (2, 2));
    assert_eq!(harness.disks.sockets().0, [std::path::Path::new("/run/boot.sock")]);
    assert_eq!(harness.offered(), ["boot", "data"]);
    let status = harness.node.disk("data").unwrap();
    assert_eq!((status.state, status.size_bytes), (StorageState::Ready, Some(1 << 20)));
    harness.wait_events(EventKind::DiskFileMade.id(), 2);

    harness.apply_ok(&HostConfig::default());
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw", "data.vhdx"]);
    assert_eq!(harness.disks.served_counts().0, 0);
    assert!(harness.disks.sockets().0.is_empty() && harness.offered().is_empty());
}

/// `USED BY` of `suimon disk list` is derived from it.
#[test]
fn the_disk_of_a_vm_shows_its_vhost_user_device_without_the_key() {
    let harness = Harness::with_store();
    let mut config = two_disks();
    config.disks[1].nbd = None;
    config.vms = host(
        "[[vm]]\nname = \"web\"\nmemory_bytes = 268435456\ndisks = [\"data\"]\n\
         [[store]]\nname = \"fast\"\npath = \"/srv/fast\"\n[[disk]]\nname = \"data\"\n\
         store = \"fast\"\nformat = \"vhdx\"\nsize_bytes = 1048576\n",
    )
    .vms;
    harness.apply_ok(&config);
    let has_device = |disk| harness.node.disk(disk).unwrap().vhost_user.is_some();
    assert!(has_device("data"));
    config.vms.clear();
    harness.apply_ok(&config);
    assert!(!has_device("data"));
}

/// Long-running hosts create and delete disks of ever new names.
#[test]
fn numbers_of_deleted_disks_stores_and_policies_are_not_kept() {
    let harness = Harness::with_store();
    for round in 0..20 {
        let mut config = two_disks();
        config.disks[0].name = name(&format!("boot-{round}"));
        config.disks[1].name = name(&format!("data-{round}"));
        config.disks[1].qos_policy = Some(name(&format!("gold-{round}")));
        config.stores[0].name = name(&format!("fast-{round}"));
        config.disks.iter_mut().for_each(|disk| disk.store = config.stores[0].name.clone());
        config.qos_policies = host("[[qos_policy]]\nname = \"gold\"").qos_policies;
        config.qos_policies[0].name = name(&format!("gold-{round}"));
        harness.apply_ok(&config);
    }
    assert_eq!(harness.node.shared().disks.counts(), [2, 1, 1]);
    harness.apply_ok(&HostConfig::default());
    let disks = &harness.node.shared().disks;
    assert_eq!(disks.counts(), [0, 0, 0]);
    assert!(disks.published.lock().unwrap().is_empty());
    assert!(disks.stores.opened_stores().is_empty());
}

#[test]
fn a_change_that_fails_leaves_neither_disk_nor_file() {
    let harness = Harness::with_store();
    harness.disks.refuse("/run/nbd.sock", true);
    let operation = harness.apply(&two_disks());
    assert_eq!(operation.state, OperationState::Failed);
    assert!(harness.disks.files(DISK_STORE).is_empty());
    assert_eq!(harness.disks.served_counts().0, 0);
    assert!(harness.disks.sockets().0.is_empty());
    assert!(harness.node.disks().is_empty());

    // A failed change restores what was there before, including a disk that was closed for it.
    harness.disks.refuse("/run/nbd.sock", false);
    let before = two_disks();
    harness.apply_ok(&before);
    let mut after = before.clone();
    after.disks[0].serial = Some("other".to_owned());
    after.disks[1].nbd.as_mut().unwrap().socket = Some("/run/refused.sock".into());
    harness.disks.refuse("/run/refused.sock", true);
    let operation = harness.apply(&after);
    assert_eq!(operation.state, OperationState::Failed);
    assert_eq!(harness.node.config(), before);
    assert_eq!(harness.disks.served_counts().0, 2);
    assert_eq!(harness.offered(), ["boot", "data"]);
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw", "data.vhdx"]);
}

#[test]
fn live_changes_do_not_interrupt_the_disk() {
    let harness = Harness::with_store();
    let mut config = two_disks();
    harness.apply_ok(&config);
    config.disks[0].nbd.as_mut().unwrap().socket = Some("/run/other.sock".into());
    config.disks[1].nbd = None;
    harness.apply_ok(&config);
    assert_eq!(harness.disks.served_counts(), (2, 2));
    assert_eq!(harness.offered(), ["boot"]);
    config.disks[0].serial = Some("S1".to_owned());
    harness.apply_ok(&config);
    assert_eq!(harness.disks.served_counts(), (2, 3));
}

#[test]
fn a_disk_takes_over_the_file_and_socket_of_a_removed_one() {
    let harness = Harness::with_store();
    let mut config = two_disks();
    harness.apply_ok(&config);
    config.disks[0].name = name("renamed");
    config.disks[0].file = Some("boot.raw".parse().unwrap());
    harness.apply_ok(&config);
    assert_eq!(harness.disks.served_counts(), (2, 3));
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw", "data.vhdx"]);
    assert_eq!(harness.offered(), ["data", "renamed"]);
}

#[test]
fn a_missing_file_is_created_only_if_its_size_is_known() {
    let harness = Harness::with_store();
    let mut config = two_disks();
    config.disks[1].size_bytes = None;
    let operation = harness.apply(&config);
    let error = operation.error.unwrap();
    assert_eq!((error.code, error.field.as_deref()), (ErrorCode::NotFound, Some("size_bytes")));
    assert_eq!(error.resource.as_deref(), Some("disk/data"));
    assert!(harness.disks.files(DISK_STORE).is_empty());
}

#[test]
fn disks_in_use_are_not_deleted_and_disks_never_shrink() {
    let harness = Harness::with_store();
    harness.apply_ok(&two_disks());
    let errors = harness.node.submit(Edit::Store(ResourceEdit::Delete(name("fast")))).unwrap_err();
    assert_eq!(errors[0].code, ErrorCode::InUse);
    assert!(errors[0].message.contains("disk/boot, disk/data"), "{}", errors[0].message);
    let smaller = br#"{"size_bytes": 524288}"#.to_vec();
    let errors =
        harness.node.submit(Edit::Disk(ResourceEdit::Patch(name("data"), smaller))).unwrap_err();
    assert_eq!(errors[0].field.as_deref(), Some("size_bytes"));
}

fn grown(bytes: u64) -> HostConfig {
    let mut config = two_disks();
    for disk in &mut config.disks {
        disk.size_bytes = Some(bytes.to_string().parse().unwrap());
    }
    config
}

fn sizes(harness: &Harness) -> Vec<Option<u64>> {
    harness.node.disks().into_iter().map(|disk| disk.size_bytes).collect()
}

#[test]
fn a_disk_grows_in_service_and_its_clients_are_notified() {
    let harness = Harness::with_store();
    harness.apply_ok(&two_disks());
    harness.apply_ok(&grown(3 << 20));
    assert_eq!(harness.disks.served_counts(), (2, 2), "no disk was taken out of service");
    assert_eq!(sizes(&harness), [Some(3 << 20); 2]);
    assert_eq!(harness.disks.resized(), [3 << 20], "the VM of the one that has a VM");
    let exported = harness.disks.exported().into_iter();
    assert_eq!(exported.map(|export| export.size_bytes).collect::<Vec<_>>(), [3 << 20; 2]);
    let events = harness.wait_events(EventKind::DiskResized.id(), 2);
    let subjects: Vec<&str> = events.iter().map(|event| event.subject.as_str()).collect();
    assert_eq!(subjects, ["disk/boot", "disk/data"]);
}

#[test]
fn a_disk_that_cannot_grow_continues_with_its_size() {
    let harness = Harness::with_store();
    harness.apply_ok(&two_disks());
    let files = harness.disks.store(DISK_STORE);
    // Resuming fails, for example because another process has locked the file.
    harness.disks.refuse_resuming(true);
    let operation = harness.apply(&grown(2 << 20));
    assert_eq!(operation.state, OperationState::Failed);
    assert_eq!(harness.node.config(), two_disks());
    harness.disks.refuse_resuming(false);
    wait_until("2 disks are in service", || harness.disks.served_counts().0 == 2);
    wait_until("both disks are exported", || harness.offered() == ["boot", "data"]);
    // The file was extended before the failure. This is not an error, and the actual size is
    // reported.
    assert_eq!(sizes(&harness), [Some(2 << 20), Some(1 << 20)]);

    files.set_change_limit(Some(0));
    let operation = harness.apply(&grown(4 << 20));
    let error = operation.error.unwrap();
    assert_eq!(
        (error.resource.as_deref(), error.field.as_deref()),
        (Some("disk/boot"), Some("size_bytes"))
    );
    assert_eq!(harness.disks.served_counts().0, 2, "{error}");
    assert_eq!(sizes(&harness), [Some(2 << 20), Some(1 << 20)]);
    assert_eq!(harness.offered(), ["boot", "data"]);
}

#[test]
fn a_disk_that_is_too_small_grows_when_it_is_opened() {
    let harness = Harness::with_store();
    let mut config = two_disks();
    config.disks.truncate(1);
    harness.apply_ok(&config);
    let (store, devices, disks) = harness.kill_with_disks();
    let files = disks.take_store(DISK_STORE);
    let harness = Harness::with_disks(store, devices, disks);
    // The size changes while the disk has failed.
    config.disks[0].size_bytes = Some("2097152".parse().unwrap());
    harness.apply_ok(&config);
    harness.disks.put_store(DISK_STORE, files);
    wait_until("the disk has 2 MiB", || sizes(&harness) == [Some(2 << 20)]);
    wait_until("DiskResized is emitted once", || {
        harness.events(EventKind::DiskResized.id()).len() == 1
    });
}

#[test]
fn remains_of_a_crash_are_removed_when_a_store_is_opened() {
    let harness = Harness::with_store();
    harness.apply_ok(&two_disks());
    let (store, devices, disks) = harness.kill_with_disks();
    let files = disks.take_store(DISK_STORE);
    let remaining_files = files
        .files()
        .into_iter()
        .chain([(suimon_ports::FileName::new(".x.vhdx.suimon-new").unwrap(), vec![1])]);
    disks.put_store(DISK_STORE, suimon_ports::testing::MemoryStore::with_files(remaining_files));
    let harness = Harness::with_disks(store, devices, disks);
    wait_until("2 disks are in service", || harness.disks.served_counts().0 == 2);
    wait_until("files of the disks only", || {
        harness.disks.files(DISK_STORE) == ["boot.raw", "data.vhdx"]
    });
}

#[test]
fn a_new_daemon_opens_disks_and_retries_until_their_store_is_available() {
    let harness = Harness::with_store();
    harness.apply_ok(&two_disks());
    let (store, devices, disks) = harness.kill_with_disks();
    let files = disks.take_store(DISK_STORE);
    let harness = Harness::with_disks(store, devices, disks);
    wait_until("a disk that has failed", || {
        let status = harness.node.disk("boot").unwrap();
        let names_store = status.reason.is_some_and(|reason| reason.contains(DISK_STORE));
        status.state == StorageState::Failed && names_store
    });
    assert_eq!(harness.node.stores()[0].state, StorageState::Failed);
    harness.wait_events(EventKind::DiskFailed.id(), 2);

    harness.disks.put_store(DISK_STORE, files);
    wait_until("2 disks are in service", || harness.disks.served_counts().0 == 2);
    wait_until("DiskRecovered is emitted 2 times", || {
        harness.events(EventKind::DiskRecovered.id()).len() == 2
    });
    assert_eq!(harness.offered(), ["boot", "data"]);
    assert!(harness.events(EventKind::DiskFileMade.id()).len() <= 2, "no file is created again");
}

#[test]
fn minimums_above_the_capacity_are_rejected_unless_forced() {
    let harness = Harness::with_store();
    let mut config = two_disks();
    config.stores[0].capacity_iops = Some(StoreCapacity::Declared(1000));
    config.disks[0].qos.min_iops = Some(600);
    harness.apply_ok(&config);
    assert_eq!(harness.disks.admitted_minimums()[0].minimums_iops, 600);

    config.disks[1].qos.min_iops = Some(400);
    let edit = || Edit::Apply(Box::new(config.clone()));
    let errors = harness.node.submit(edit()).unwrap_err();
    assert_eq!(errors[0].code, ErrorCode::Overcommitted);
    let text = &errors[0].message;
    assert!(text.contains("minimums is 1000 IOPS") && text.contains("is 900"), "{text}");
    assert_eq!(harness.disks.admitted_minimums()[0].minimums_iops, 600);

    let options = ChangeOptions { forces_minimums: true, ..ChangeOptions::default() };
    let operation = harness.node.submit_with(edit(), options).unwrap();
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded);
    assert_eq!(harness.disks.admitted_minimums()[0].minimums_iops, 1000);
    harness.wait_events(EventKind::PromiseForced.id(), 1);
    // A change that does not increase minimums is accepted, even if they exceed the capacity.
    config.disks[0].serial = Some("S".to_owned());
    harness.apply_ok(&config);
    config.disks.remove(0);
    harness.apply_ok(&config);
    assert_eq!(harness.disks.admitted_minimums()[0].minimums_iops, 400);
}

#[test]
fn limits_of_a_failed_change_are_rolled_back() {
    let harness = Harness::with_store();
    let mut config = two_disks();
    config.stores[0].capacity_iops = Some(StoreCapacity::Declared(1000));
    harness.apply_ok(&config);
    config.disks[0].qos.min_iops = Some(100);
    config.disks[1].nbd.as_mut().unwrap().socket = Some("/run/refused.sock".into());
    harness.disks.refuse("/run/refused.sock", true);
    assert_eq!(harness.apply(&config).state, OperationState::Failed);
    assert_eq!(harness.disks.admitted_minimums()[0].minimums_iops, 0);
}

#[test]
fn the_file_of_a_deleted_disk_is_deleted_only_on_request() {
    let harness = Harness::with_store();
    harness.apply_ok(&two_disks());
    let delete = |disk: &str| Edit::Disk(ResourceEdit::Delete(name(disk)));
    harness.change(delete("boot"));
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw", "data.vhdx"]);
    let options = ChangeOptions { deletes_files: true, ..ChangeOptions::default() };
    let operation = harness.node.submit_with(delete("data"), options).unwrap();
    harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw"]);
}

#[test]
fn a_disk_that_the_plane_has_lost_fails_and_is_retried() {
    let harness = Harness::with_store();
    harness.apply_ok(&two_disks());
    let files = harness.disks.take_store(DISK_STORE);
    harness.disks.lose("no processor takes it");
    let failed = || harness.events(EventKind::DiskFailed.id());
    wait_until("the number of events is 2", || failed().len() == 2);
    assert!(failed()[0].text.contains("no processor takes it"), "{:?}", failed());
    harness.disks.put_store(DISK_STORE, files);
    wait_until("2 disks are in service", || harness.disks.served_counts().0 == 2);
    wait_until("DiskRecovered is emitted 2 times", || {
        harness.events(EventKind::DiskRecovered.id()).len() == 2
    });
    assert_eq!(harness.node.disk("boot").unwrap().state, StorageState::Ready);
    assert_eq!(harness.offered(), ["boot", "data"]);
}

#[test]
fn a_disk_whose_store_does_not_respond_is_reported_as_stalled() {
    let harness = Harness::with_store();
    harness.apply_ok(&two_disks());
    harness.disks.stall(true);
    wait_until("DiskStalled is emitted 2 times", || {
        harness.events(EventKind::DiskStalled.id()).len() == 2
    });
    let event = &harness.wait_event(EventKind::DiskStalled.id());
    assert_eq!(
        event.text,
        "Store fast has not completed a request of the disk for 5 s; the \
                            requests stay pending. Check the device of the store."
    );
    assert_eq!((event.subject.as_str(), &event.fields["store"]), ("disk/boot", &"fast".to_owned()));
    let status = harness.node.disk("boot").unwrap();
    assert_eq!(status.state, StorageState::Stalled);
    assert_eq!(status.reason.unwrap(), "the store has not responded for 5 s");
    harness.disks.stall(false);
    wait_until("DiskAnswered is emitted 2 times", || {
        harness.events(EventKind::DiskAnswered.id()).len() == 2
    });
    assert_eq!(harness.node.disk("boot").unwrap().state, StorageState::Ready);
}

/// The kernel releases the locks of a killed process some time after it has ended.
#[test]
fn a_new_daemon_waits_for_locks_that_are_about_to_end() {
    let harness = Harness::with_store();
    harness.apply_ok(&two_disks());
    let (store, devices, disks) = harness.kill_with_disks();
    let files = disks.take_store(DISK_STORE);
    let lock = suimon_ports::StoreFiles::open(
        &files,
        &suimon_ports::FileName::new("boot.raw").unwrap(),
        suimon_ports::FileLockMode::Write,
        512,
    )
    .unwrap();
    disks.put_store(DISK_STORE, files);
    let release = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        drop(lock);
    });
    let harness = Harness::with_disks(store, devices, disks);
    wait_until("the disk is ready", || {
        harness.node.disk("boot").unwrap().state == StorageState::Ready
    });
    assert!(harness.events(EventKind::DiskFailed.id()).is_empty());
    release.join().unwrap();
}

#[test]
fn a_queue_that_the_host_cannot_serve_is_reported() {
    let harness = Harness::with_store();
    harness.apply_ok(&two_disks());
    for queue in [QueueKey::Client(7), QueueKey::Ring(1)] {
        let fault =
            QueueFault { kind: FaultKind::SystemCallFailed, detail: "os error 28".to_owned() };
        harness.disks.report(PlaneNotice::QueueFault { disk: DiskId(0), queue, fault });
    }
    let events = || harness.events(EventKind::DiskQueueFailed.id());
    wait_until("the number of events is 2", || events().len() == 2);
    let texts: Vec<String> = events().into_iter().map(|event| event.text).collect();
    assert!(texts[0].contains("NBD client") && texts[0].contains("os error 28"), "{texts:?}");
    assert!(texts[1].contains("Queue 1 of the disk's VM"), "{texts:?}");
    assert!(harness.events(EventKind::DiskProtocolViolation.id()).is_empty());
}
