//! Comparison of created images by content: of a VHDX, whose headers change when it is opened, and
//! of images whose modification time was lost with the host's power.

use suimon_image_files::{DiskKind, DiskPlan, HostInputs, RemainingRecordPolicy};

use super::*;
use crate::disks::image_task::OpenedImages;

const MB: u64 = 1 << 20;
/// Modification time of a created image that was not written.
const MARKED_UNIX_S: u64 = NOW_UNIX_S - 1;

fn refused(kind: &str) -> String {
    format!(r#"{{"kind": "{kind}", "nbd": {{"socket": "/run/refused.sock"}}}}"#)
}

fn opened_file(files: &MemoryFiles, image: &str) -> std::sync::Arc<dyn suimon_ports::DiskFile> {
    StoreFiles::open(files, &file(image), FileLockMode::Write, 512).unwrap()
}

fn modified(files: &MemoryFiles, image: &str) -> u64 {
    StoreFiles::status(files, &file(image)).unwrap().modified_unix_s
}

fn bytes(harness: &Harness, image: &str) -> Vec<u8> {
    harness.disks.store(DISK_STORE).files()[&file(image)].clone()
}

/// Returns a fixed VHDX of the size of the disk `data`, whose last megabyte begins with a pattern.
fn restored_vhdx(harness: &Harness) -> Vec<u8> {
    let entry = harness.node.shared().disks.find(&name("data")).unwrap();
    let plan = DiskPlan { kind: Some(DiskKind::Fixed), ..entry.lock().required.plan() };
    let store = MemoryFiles::default();
    let files: std::sync::Arc<dyn StoreFiles> = std::sync::Arc::new(store.clone());
    let mut number = 1 << 100_u128;
    let mut random = || {
        number += 1;
        u128::to_be_bytes(number)
    };
    let mut inputs = HostInputs {
        random: &mut random,
        now_unix_s: NOW_UNIX_S,
        redo_records: None,
        remaining_redo_records: RemainingRecordPolicy::Redo,
    };
    suimon_image_files::create(&files, &plan, &mut inputs).unwrap();
    let mut bytes = store.files()[&file("data.vhdx")].clone();
    let payload = bytes.len() - MB as usize;
    bytes[payload..][..512].fill(7);
    bytes
}

/// Overwrites a file in place, as `cp` does.
fn overwrite(found: &dyn suimon_ports::DiskFile, bytes: &[u8]) {
    found.set_len(0).unwrap();
    found.write_at(0, bytes).unwrap();
}

/// Waits until the disk `data` is in service with the restored image. Opening it changes its
/// headers.
fn assert_restored(harness: &Harness, restored: &[u8]) {
    wait_until("the disk is in service", || state(harness, "data") == StorageState::Ready);
    let found = bytes(harness, "data.vhdx");
    assert!(found.get(2 << 20..) == restored.get(2 << 20..), "{} bytes", found.len());
    wait_for_no_record(harness);
}

/// Opens the disk `data` as a change with `--create-image` does.
fn opened_by_change(harness: &Harness) -> OpenedImages {
    harness.disks.store(DISK_STORE).set_time(NOW_UNIX_S);
    let shared = harness.node.shared();
    let entry = shared.disks.find(&name("data")).unwrap();
    let set_requested = |is_requested| {
        entry.set_new(is_requested);
        entry.lock().is_image_requested = is_requested;
    };
    set_requested(true);
    let work = shared.image_task(&entry);
    set_requested(false);
    work.open().ok().unwrap()
}

/// The daemon is killed after the VHDX was opened, before the change is committed or rolled back.
#[test]
fn the_next_daemon_removes_a_vhdx_that_was_only_opened() {
    for kind in ["dynamic", "fixed"] {
        let harness = with_queued_removal_of("data", "data.vhdx", &refused(kind));
        let (store, devices, disks) = harness.kill_with_disks();
        let files = disks.store(DISK_STORE);
        assert_eq!(modified(&files, "data.vhdx"), NOW_UNIX_S, "its headers were written");
        let harness = Harness::with_disks(store, devices, disks);
        assert_missing(&harness, "data", "/srv/fast/data.vhdx");
        assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw"], "{kind}");
        wait_for_no_record(&harness);
    }
}

#[test]
fn a_vhdx_that_was_written_since_stays() {
    for kind in ["dynamic", "fixed"] {
        let harness = with_queued_removal_of("data", "data.vhdx", &refused(kind));
        let (store, devices, disks) = harness.kill_with_disks();
        let image = opened_file(&disks.store(DISK_STORE), "data.vhdx");
        let len = image.len().unwrap();
        let payload = if kind == "fixed" { len - 4096 } else { len };
        image.write_at(payload, &[7; 4096]).unwrap();
        drop(image);
        let harness = Harness::with_disks(store, devices, disks);
        wait_until("the disk is in service", || state(&harness, "data") == StorageState::Ready);
        wait_for_no_record(&harness);
        assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw", "data.vhdx"], "{kind}");
    }
}

#[test]
fn a_vhdx_that_was_overwritten_in_place_stays() {
    for kind in ["dynamic", "fixed"] {
        let harness = with_queued_removal_of("data", "data.vhdx", &refused(kind));
        let restored = restored_vhdx(&harness);
        let (store, devices, disks) = harness.kill_with_disks();
        overwrite(opened_file(&disks.store(DISK_STORE), "data.vhdx").as_ref(), &restored);
        let harness = Harness::with_disks(store, devices, disks);
        assert_restored(&harness, &restored);
    }
}

#[test]
fn a_rollback_removes_a_vhdx_that_was_only_opened() {
    let (harness, _) = restarted_without(with_data(), &["data.vhdx"]);
    assert_missing(&harness, "data", "/srv/fast/data.vhdx");
    opened_by_change(&harness).undo();
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw"]);
    assert!(harness.store.keys(CREATED).is_empty());
}

/// The image is restored while the daemon has the created one open. Closing that one must not
/// change the restored image.
#[test]
fn a_rollback_keeps_a_vhdx_that_was_overwritten_in_place() {
    let (harness, _) = restarted_without(with_data(), &["data.vhdx"]);
    assert_missing(&harness, "data", "/srv/fast/data.vhdx");
    let restored = restored_vhdx(&harness);
    let opened = opened_by_change(&harness);
    overwrite(opened.images.layer_stack.layers[0].file.as_ref(), &restored);
    opened.undo();
    assert_restored(&harness, &restored);
}

/// A guest has written and flushed data before the commit. A flush does not make the modification
/// time durable.
#[test]
fn an_image_that_was_written_before_a_loss_of_power_stays() {
    let of_vhd = |kind: &str| {
        let nbd = r#""nbd": {"socket": "/run/refused.sock"}"#;
        format!(r#"{{"format": "vhd", "file": "boot.vhd", "kind": "{kind}", {nbd}}}"#)
    };
    let changes = [
        ("boot.raw", refused("dynamic")),
        ("boot.raw", refused("fixed")),
        ("boot.vhd", of_vhd("fixed")),
        ("boot.vhd", of_vhd("dynamic")),
    ];
    for (image, patch) in changes {
        let (store, devices, disks) =
            with_queued_removal_of("boot", "boot.raw", &patch).kill_with_disks();
        let files = disks.store(DISK_STORE);
        assert_eq!(modified(&files, image), MARKED_UNIX_S, "{patch}");
        opened_file(&files, image).write_at(0, &[7; 512]).unwrap();
        StoreFiles::set_modified(&files, &file(image), MARKED_UNIX_S).unwrap();
        let harness = Harness::with_disks(store, devices, disks);
        wait_for_no_record(&harness);
        assert_eq!(bytes(&harness, image)[..512], [7; 512], "{patch}");
    }
}

/// The files of the disk do not belong to the daemon, so that it cannot set their times.
#[test]
fn a_rollback_keeps_the_record_of_an_image_that_cannot_be_compared() {
    let (harness, _) = restarted_without(with_data(), &["boot.raw"]);
    assert_missing(&harness, "boot", "/srv/fast/boot.raw");
    harness.disks.store(DISK_STORE).set_rejects_modified_time(true);
    harness.disks.refuse("/run/refused.sock", true);
    let operation = set(&harness, "boot", REFUSED, true);
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    wait_until("the disk has failed", || {
        let reason = harness.node.disk("boot").unwrap().reason;
        reason.is_some_and(|reason| reason.contains("may be an empty one"))
    });
    assert_eq!(harness.disks.files(DISK_STORE), ["boot.raw", "data.vhdx"]);
    assert_eq!(harness.store.keys(CREATED), ["/srv/fast/boot.raw"]);
}
