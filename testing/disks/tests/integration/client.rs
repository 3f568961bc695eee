//! Tests of the client in this process and of the measurements based on it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use suimon_disk_tests::{
    Client, ClientSpec, CompletionCounters, DiskWorker, EngineLoad, QosLimits, RequestPattern,
    StoreFolder, never_readable, new_disk, request_cost_ns,
};
use suimon_image_files::LayerStack;
use suimon_image_files::{DiskFormat, DiskKind};
use suimon_ports::CpuAffinity;
use suimon_rig::wait_until;

const DISK_BYTES: u64 = 8 << 20;
const LIMIT: Duration = Duration::from_secs(120);

fn client(pattern: RequestPattern, bytes: u32) -> ClientSpec {
    ClientSpec { pattern, depth: 8, bytes, disk_bytes: DISK_BYTES }
}

/// Serves a disk until `requests` requests are complete, and asserts that none failed.
fn serve(disk: LayerStack, client: ClientSpec, requests: u64) -> Arc<CompletionCounters> {
    let worker = DiskWorker::start(CpuAffinity::Floating).unwrap();
    let disk = worker.add_disk(disk, None).unwrap();
    let client = Client::new(client, Arc::new(never_readable().unwrap()));
    let answers = client.answers();
    worker.add_queue(disk, Box::new(client)).unwrap();
    wait_until("completions", LIMIT, || Ok(answers.done() + answers.failed() >= requests)).unwrap();
    worker.detach_clients(disk);
    worker.close_disk(disk).unwrap();
    assert_eq!(answers.failed(), 0);
    answers
}

fn folder() -> (tempfile::TempDir, StoreFolder) {
    let folder = tempfile::tempdir().unwrap();
    let store = StoreFolder::open(folder.path()).unwrap();
    (folder, store)
}

fn is_all(path: &Path, byte: u8) -> bool {
    let bytes = std::fs::read(path).unwrap();
    bytes.len() as u64 == DISK_BYTES && bytes.iter().all(|content_byte| *content_byte == byte)
}

#[test]
fn a_disk_is_filled_once_and_read_and_written_without_end() {
    let (folder, store) = folder();
    let plan = new_disk(DiskFormat::Raw, DiskKind::Fixed, None);
    let file = folder.path().join(plan.label());
    std::fs::write(&file, vec![1; DISK_BYTES as usize]).unwrap();
    let pieces = DISK_BYTES / 4096;
    let reads =
        serve(store.disk(&plan).unwrap(), client(RequestPattern::RandomReads, 4096), 2 * pieces);
    assert!(reads.done() >= 2 * pieces && is_all(&file, 1));
    let written = serve(store.disk(&plan).unwrap(), client(RequestPattern::Filling, 4096), pieces);
    assert_eq!(written.done(), pieces);
    assert!(is_all(&file, 0));
    serve(store.disk(&plan).unwrap(), client(RequestPattern::RandomWrites, 4096), 2 * pieces);
}

#[test]
fn a_dynamic_image_that_was_filled_is_allocated() {
    let (_folder, store) = folder();
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let plan = |size| new_disk(format, DiskKind::Dynamic, size);
        store.make(&plan(Some(DISK_BYTES))).unwrap();
        let allocated = || store.allocated_bytes(&plan(None)).unwrap();
        assert!(allocated() < DISK_BYTES, "{format:?}: {}", allocated());
        let pieces = DISK_BYTES / (1 << 20);
        serve(store.disk(&plan(None)).unwrap(), client(RequestPattern::Filling, 1 << 20), pieces);
        assert!(allocated() >= DISK_BYTES, "{format:?}: {}", allocated());
    }
}

#[test]
fn a_request_has_a_cost_under_all_limits() {
    for held_to in
        [QosLimits::NoStore, QosLimits::NoLimits, QosLimits::AllLimits, QosLimits::AllLimitsAndWait]
    {
        for (disks, busy, ends) in [(1, 1, 16), (200, 150, 16), (200, 150, 150)] {
            let load = EngineLoad { disks, busy, ends, limits: held_to };
            let cost = request_cost_ns(&load).unwrap();
            assert!(cost.is_finite() && cost > 0.0, "{load:?}: {cost}");
        }
    }
}
