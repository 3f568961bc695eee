//! Tests that requests beyond a limit are rejected with the limit, and that the disk stays in
//! service unchanged.

use suimon_contract::{ApiError, DiskFormat, ErrorCode, StorageState};

use crate::testing::{DEADLINE, DISK_STORE, Harness, host, name};
use crate::{DiskFileJob, Edit, ResourceEdit};

fn harness(format: &str) -> Harness {
    let harness = Harness::with_store();
    harness.apply_ok(&host(&format!(
        "[[store]]\nname = \"fast\"\npath = \"/srv/fast\"\n[[disk]]\nname = \"data\"\n\
         store = \"fast\"\nformat = \"{format}\"\nsize_bytes = 8388608\n\
         nbd = {{ socket = \"/run/nbd.sock\" }}\n"
    )));
    harness
}

/// Asserts that the disk is in service with its original size and a single file.
fn goes_on(harness: &Harness) {
    let disk = harness.node.disk("data").unwrap();
    assert_eq!((disk.state, disk.size_bytes), (StorageState::Ready, Some(8 << 20)));
    assert_eq!(harness.disks.files(DISK_STORE).len(), 1);
}

fn job_error(harness: &Harness, job: DiskFileJob) -> ApiError {
    match harness.node.start_disk_job(&name("data"), job) {
        Ok(started) => harness.node.wait_operation(started.id, DEADLINE).unwrap().error.unwrap(),
        Err(error) => error,
    }
}

#[test]
fn a_size_beyond_the_format_is_refused() {
    for (format, size, limit) in [
        ("vhd", "2041 GiB", "2040 GiB"),
        ("vhdx", "65 TiB", "64 TiB"),
        ("raw", "2048 TiB", "1024 TiB"),
    ] {
        let harness = harness(format);
        let patch = format!("{{\"size_bytes\": \"{size}\"}}").into_bytes();
        let edit = Edit::Disk(ResourceEdit::Patch(name("data"), patch));
        let error = match harness.node.submit(edit) {
            Ok(started) => {
                harness.node.wait_operation(started.id, DEADLINE).unwrap().error.unwrap()
            }
            Err(errors) => errors.into_iter().next().unwrap(),
        };
        assert_eq!(error.field.as_deref(), Some("size_bytes"), "{error}");
        assert!(error.message.contains(limit), "{error}");
        goes_on(&harness);
    }
}

#[test]
fn a_file_name_too_long_for_its_temporary_name_is_rejected() {
    // File names have at most 255 bytes. The temporary name of an unfinished image has 12 bytes
    // more than the image's.
    let long_name = format!("{}.vhdx", "x".repeat(245));
    let harness = harness("vhdx");
    let snapshot = suimon_contract::SnapshotDiskRequest { file: long_name.parse().unwrap() };
    let convert = suimon_contract::ConvertDiskRequest {
        file: long_name.parse().unwrap(),
        format: DiskFormat::Vhdx,
        kind: None,
    };
    for job in [DiskFileJob::Snapshot(snapshot), DiskFileJob::Convert(convert)] {
        let error = job_error(&harness, job);
        assert_eq!(error.code, ErrorCode::InvalidValue, "{error}");
        assert!(error.message.contains("a name that leaves room for 12 bytes"), "{error}");
        goes_on(&harness);
    }
}

#[test]
fn a_merge_whose_note_would_have_a_too_long_name_is_rejected() {
    // The name of the merge note of a VHD has 14 bytes more than the parent's, the temporary name
    // of an unfinished image 12.
    let long_name = format!("{}.vhd", "x".repeat(239));
    let harness = harness("vhd");
    // An image is created only for a new disk.
    let mut config = harness.node.config();
    let mut disk = config.disks.remove(0);
    harness.apply_ok(&config);
    disk.file = Some(long_name.parse().unwrap());
    config.disks.push(disk);
    harness.apply_ok(&config);
    let request = suimon_contract::SnapshotDiskRequest { file: "child.vhd".parse().unwrap() };
    let started =
        harness.node.start_disk_job(&name("data"), DiskFileJob::Snapshot(request)).unwrap();
    harness.node.wait_operation(started.id, DEADLINE).unwrap();
    let files = harness.disks.files(DISK_STORE);
    let error = job_error(&harness, DiskFileJob::Merge);
    assert!(error.message.contains("a name that leaves room for 14 bytes"), "{error}");
    let disk = harness.node.disk("data").unwrap();
    assert_eq!((disk.state, disk.layers), (StorageState::Ready, Some(2)));
    assert_eq!(harness.disks.files(DISK_STORE), files);
}
