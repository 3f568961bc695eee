//! Tests of conflicts between copying a disk and other operations.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use suimon_contract::{ApiError, ByteSize, ErrorCode, HostConfig, OperationState};

use crate::testing::{DEADLINE, Harness, host, name, wait_until};
use crate::{DiskFileJob, DiskMirror, Edit, ServedDisk};

const SIZE: u64 = 8 << 20;

fn config() -> HostConfig {
    host(
        r#"
        [[store]]
        name = "fast"
        path = "/srv/fast"
        [[disk]]
        name = "data"
        store = "fast"
        format = "vhdx"
        size_bytes = 8388608
        nbd = { socket = "/run/nbd.sock" }
        [[disk]]
        name = "old"
        store = "fast"
        format = "raw"
        size_bytes = 1048576
        read_only = true
        "#,
    )
}

fn harness() -> Harness {
    let harness = Harness::with_store();
    harness.disks.set_far_bytes(Some(SIZE));
    harness.apply_ok(&config());
    harness
}

fn line() -> OwnedFd {
    UnixStream::pair().unwrap().0.into()
}

fn mirror(harness: &Harness) -> Result<DiskMirror, ApiError> {
    harness.node.mirror_disk(&name("data"), line())
}

fn serve(harness: &Harness) -> Result<ServedDisk, ApiError> {
    harness.node.serve_disk(&name("data"), line())
}

/// Asserts that all other operations on the disk are rejected with this reason.
fn assert_kept(harness: &Harness, reason: &str) {
    let snapshot = suimon_contract::SnapshotDiskRequest { file: "next.vhdx".parse().unwrap() };
    for work in [DiskFileJob::Snapshot(snapshot), DiskFileJob::Check, DiskFileJob::Compact] {
        let error = harness.node.start_disk_job(&name("data"), work).unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict, "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    let mut larger = config();
    larger.disks[0].size_bytes = Some(ByteSize::new(2 * SIZE));
    let mut removed = config();
    removed.disks.remove(0);
    for changed in [larger, removed] {
        let errors = harness.node.submit(Edit::Apply(Box::new(changed))).unwrap_err();
        assert!(errors.iter().any(|error| error.to_string().contains(reason)), "{errors:?}");
    }
    for error in [mirror(harness).err().unwrap(), serve(harness).err().unwrap()] {
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn other_operations_on_a_disk_being_copied_are_rejected() {
    let harness = harness();
    let copied = mirror(&harness).unwrap();
    assert_kept(&harness, "is migrating to another node");
    wait_until("the first pass has copied all data", || copied.progress().has_copied_all);
    copied.finish(Instant::now() + DEADLINE).unwrap();
    drop(copied);
    let served_disk = serve(&harness).unwrap();
    assert_kept(&harness, "is migrating from another node");
    served_disk.end().unwrap();
    drop(served_disk);
    assert_eq!(harness.disks.copied(), 0);
    let operation = harness.node.start_disk_job(&name("data"), DiskFileJob::Check).unwrap();
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
}

#[test]
fn a_disk_that_is_not_ready_is_not_copied() {
    let harness = harness();
    let code = |copied: Result<DiskMirror, ApiError>| copied.err().unwrap().code;
    assert_eq!(code(harness.node.mirror_disk(&name("none"), line())), ErrorCode::NotFound);
    let read_only = harness.node.serve_disk(&name("old"), line()).err().unwrap();
    assert_eq!(read_only.code, ErrorCode::Conflict, "{read_only}");
    // The other end does not respond, or has another size: the disk is released.
    for bytes in [None, Some(SIZE + 512)] {
        harness.disks.set_far_bytes(bytes);
        let error = mirror(&harness).err().unwrap();
        assert_eq!(error.resource.as_deref(), Some("disk/data"), "{error}");
        assert_eq!(harness.disks.copied(), 0);
    }
    harness.disks.set_far_bytes(Some(SIZE));
    drop(mirror(&harness).unwrap());
    harness.node.stop();
}

/// Data from the other node may still be written, so that the error must reach the caller that
/// would run the VM.
#[test]
fn the_end_of_a_copy_fails_if_the_store_does_not_respond() {
    let harness = harness();
    let served_disk = serve(&harness).unwrap();
    harness.disks.stall(true);
    assert_eq!(served_disk.end().unwrap_err().code, ErrorCode::HostError);
    harness.disks.stall(false);
    served_disk.end().unwrap();
    let copied = mirror(&harness).err().unwrap();
    assert_eq!(copied.code, ErrorCode::Conflict, "{copied}");
    drop(served_disk);
    let copied = mirror(&harness).unwrap();
    copied.finish(Instant::now() + DEADLINE).unwrap();
}
