use suimon_contract::{ErrorCode, EventKind, ImageRequest, ImageVerdict, StorageState};
use suimon_ports::{FileLockMode, FileName, StoreFiles};

use std::path::Path;

use super::{ImageRequests, REQUESTS_MAX};
use crate::disks::OutgoingDisk;
use crate::testing::{DISK_STORE, Harness, host, name, wait_until};

const STORE: &str = "[[store]]\nname = \"fast\"\npath = \"/srv/fast\"\n";
const DISK: &str = "[[disk]]\nname = \"data\"\nstore = \"fast\"\nformat = \"vhdx\"\n\
                    size_bytes = 8388608\nnbd = { socket = \"/run/nbd.sock\" }\n";

fn request(file: &str) -> ImageRequest {
    let file = file.parse().unwrap();
    ImageRequest { file, format: None, parent: None, undo_backup: None, dry_run: false }
}

/// Damages the first of the two headers of the image.
fn damage(harness: &Harness) {
    let files = harness.disks.store(DISK_STORE);
    let file = files.open(&FileName::new("data.vhdx").unwrap(), FileLockMode::Write, 1).unwrap();
    file.write_at(64 << 10, &[0x5a; 4096]).unwrap();
}

#[test]
fn an_image_in_service_is_rejected_and_repaired_out_of_service() {
    let harness = Harness::with_store();
    harness.apply_ok(&host(&format!("{STORE}{DISK}")));
    let (store, image) = (name("fast"), request("data.vhdx"));
    let error = harness.node.image_info(&store, &image).unwrap_err();
    assert_eq!(error.code, ErrorCode::DeviceBusy, "{error}");
    harness.apply_ok(&host(STORE));
    let info = harness.node.image_info(&store, &image).unwrap();
    assert_eq!((info.size_bytes, info.file.as_str()), (8 << 20, "data.vhdx"));

    damage(&harness);
    let check = harness.node.check_image(&store, &image).unwrap();
    assert_eq!(check.verdict, ImageVerdict::Damaged);
    let dry = ImageRequest { dry_run: true, ..image.clone() };
    let planned = harness.node.repair_image(&store, &dry).unwrap();
    assert!(planned.backup.is_none() && planned.check.verdict == ImageVerdict::Sound);
    let changes = harness.node.repair_image(&store, &image).unwrap();
    assert_eq!((changes.actions, changes.check.verdict), (planned.actions, ImageVerdict::Sound));
    harness.wait_events(EventKind::ImageRepaired.id(), 1);
    let undo = ImageRequest {
        undo_backup: changes.backup.map(|backup| backup.parse().unwrap()),
        ..image.clone()
    };
    let undone = harness.node.repair_image(&store, &undo).unwrap();
    assert_eq!(undone.check.verdict, ImageVerdict::Damaged);
    let repeated = harness.node.repair_image(&store, &image).unwrap();
    assert!(
        repeated.backup.is_some()
            && repeated.backup != undo.undo_backup.map(|backup| backup.to_string())
    );
    harness.apply_ok(&host(&format!("{STORE}{DISK}")));
    assert_eq!(harness.node.disk("data").unwrap().state, StorageState::Ready);
}

#[test]
fn a_briefly_locked_image_is_waited_for() {
    let harness = Harness::with_store();
    harness.apply_ok(&host(&format!("{STORE}{DISK}")));
    harness.apply_ok(&host(STORE));
    let files = harness.disks.store(DISK_STORE);
    let locked = files.open(&FileName::new("data.vhdx").unwrap(), FileLockMode::Write, 1).unwrap();
    let before = files.open_conflict_count();
    std::thread::scope(|scope| {
        let info = scope.spawn(|| harness.node.image_info(&name("fast"), &request("data.vhdx")));
        wait_until("the image is found locked", || files.open_conflict_count() > before);
        drop(locked);
        assert_eq!(info.join().unwrap().unwrap().size_bytes, 8 << 20);
    });
}

#[test]
fn contradictory_image_requests_are_rejected() {
    let harness = Harness::with_store();
    harness.apply_ok(&host(STORE));
    let error = harness.node.image_info(&name("slow"), &request("a.vhdx")).unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound, "{error}");
    let error = harness.node.check_image(&name("fast"), &request("a.vhdx")).unwrap_err();
    assert_eq!(error.code, ErrorCode::DeviceMissing, "{error}");
    let error = harness.node.set_image_parent(&name("fast"), &request("a.vhdx")).unwrap_err();
    assert_eq!((error.code, error.field.as_deref()), (ErrorCode::MissingKey, Some("parent")));
}

#[test]
fn the_number_of_concurrent_image_requests_is_limited() {
    let requests = ImageRequests::default();
    let (hung, responsive) = (Path::new("/srv/hung"), Path::new("/srv/good"));
    let mut running: Vec<_> = (0..REQUESTS_MAX).map(|_| requests.begin(hung).unwrap()).collect();
    assert_eq!(requests.begin(hung).err().unwrap().code, ErrorCode::InUse);
    // The requests about one store do not occupy the slots of another.
    drop(requests.begin(responsive).unwrap());
    running.pop();
    drop(requests.begin(hung).unwrap());
    drop(running);
    assert!(requests.lock().is_empty());
}

/// The destination opens the file as soon as the source has closed it.
#[test]
fn an_image_that_is_handed_over_to_another_node_is_refused() {
    let harness = Harness::with_store();
    harness.apply_ok(&host(&format!("{STORE}{DISK}")));
    let (store, image) = (name("fast"), request("data.vhdx"));
    let outgoing = OutgoingDisk::begin(harness.node.shared(), &name("data")).unwrap();
    outgoing.release().unwrap();
    let error = harness.node.repair_image(&store, &image).unwrap_err();
    assert_eq!((error.code, error.resource.as_deref()), (ErrorCode::Conflict, Some("disk/data")));
    assert!(error.message.contains("has taken over the disk"), "{error}");
    outgoing.reclaim().unwrap();
}
