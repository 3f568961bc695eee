//! Tests of the limits and the end of requests in flight.

use std::sync::Arc;

use suimon_image::{ByteRange, ImageFile};
use suimon_ports::{ArmResult, DiskFile, FileIo, FileRequest, FileSlot};

use crate::file_io_tests::{Bench, part};
use crate::{FileAccess, HostFile, PayloadUse};

#[test]
fn requests_that_cannot_start_fail_and_free_their_slot() {
    let mut bench = Bench::new(2, 4096);
    bench.payload(0, PayloadUse::Source, &[(0, 4096)]);
    let payload = bench.table.bytes(0);
    let too_long = bench.run(|table| FileRequest::Write {
        offset: 0,
        source: part(table, 0, 0, payload + 1),
        is_durable: false,
    });
    assert_eq!(too_long.result.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    let wrong_way =
        bench.run(|table| FileRequest::Read { offset: 0, destination: part(table, 0, 0, 4096) });
    assert_eq!(wrong_way.result.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    assert!(bench.io.submit(FileSlot(3), FileRequest::Flush, 1));
    let completion = bench.wait().remove(&1).unwrap();
    assert_eq!(completion.result.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    let huge = ByteRange::new(0, u64::MAX).unwrap();
    assert!(bench.run(|_| FileRequest::ReadBytes(huge)).result.is_err());
    // Both slots are free again, and there is no third slot.
    assert!(bench.io.submit(bench.slot, FileRequest::Flush, 1));
    assert!(bench.io.submit(bench.slot, FileRequest::Flush, 2));
    assert!(!bench.io.submit(bench.slot, FileRequest::Flush, 3));
    assert_eq!(bench.wait().len(), 2);
}

#[test]
fn a_ring_has_no_more_files_and_operations_than_it_was_created_for() {
    let mut bench = Bench::new(2, 512);
    let file = Arc::clone(&bench.file);
    let add = |bench: &mut Bench| bench.io.add_file(Arc::clone(&file) as Arc<dyn DiskFile>);
    let slots: Vec<FileSlot> = (0..3).map(|_| add(&mut bench).unwrap()).collect();
    let error = add(&mut bench).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::QuotaExceeded);
    // The slots of removed files are reused.
    for _ in 0..100 {
        bench.io.remove_file(slots[1]);
        assert_eq!(add(&mut bench).unwrap(), slots[1]);
    }
    let write = |token| (FileRequest::WriteBytes { offset: 0, bytes: vec![1; 512] }, token);
    for (request, token) in [write(1), write(2)] {
        assert!(bench.io.submit(bench.slot, request, token));
    }
    let (request, token) = write(3);
    assert!(
        !bench.io.submit(bench.slot, request, token),
        "as many are in flight as it has room for"
    );
    assert_eq!(bench.wait().len(), 2);
}

#[test]
fn errors_of_the_system_are_reported() {
    let mut bench = Bench::new(4, 512);
    bench.file.write_at(0, &[1; 4096]).unwrap();
    let path = format!(
        "/proc/self/fd/{}",
        std::os::fd::AsRawFd::as_raw_fd(&rustix::fd::AsFd::as_fd(&*bench.file))
    );
    let path = std::fs::read_link(path).unwrap();
    let reader = Arc::new(HostFile::open(&path, FileAccess::Read, 512).unwrap());
    let slot = bench.io.add_file(reader).unwrap();
    let write = FileRequest::WriteBytes { offset: 0, bytes: vec![0; 512] };
    assert!(bench.io.submit(slot, write, 1));
    let refused = bench.wait().remove(&1).unwrap().result.unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EBADF));
    bench.io.remove_file(slot);
}

#[test]
fn short_requests_on_a_file_in_memory_complete_at_submission() {
    let mut bench = Bench::in_memory(8, 512);
    bench.payload(0, PayloadUse::Source, &[(0, 4096)]);
    bench.payload(1, PayloadUse::Source, &[(0, 512 << 10)]);
    let mut completions = Vec::new();
    for token in 0..4 {
        let from = part(&bench.table, 0, 0, 4096);
        let write =
            FileRequest::Write { offset: token * 4096, source: from, is_durable: token == 3 };
        assert!(bench.io.submit(bench.slot, write, token));
    }
    assert_eq!((bench.io.in_flight(), bench.io.arm()), (4, ArmResult::Pending));
    assert_eq!(bench.io.poll_completions(&mut completions), 4);
    assert!(completions.drain(..).all(|completion| completion.result.is_ok()));
    // Large operations are executed by kernel threads.
    let from = part(&bench.table, 1, 0, 512 << 10);
    let write = FileRequest::Write { offset: 0, source: from, is_durable: false };
    assert!(bench.io.submit(bench.slot, write, 5));
    assert_eq!(bench.io.unreported_completions(), 0);
    assert_eq!(bench.wait().len(), 1);
    assert_eq!(bench.file.len().unwrap(), 512 << 10);
}

#[test]
fn a_flush_of_a_file_in_memory_has_ended_when_it_was_submitted() {
    let mut bench = Bench::in_memory(8, 512);
    assert!(bench.io.submit(bench.slot, FileRequest::Flush, 1));
    assert_eq!(bench.io.unreported_completions(), 1);
    assert!(bench.wait().remove(&1).unwrap().result.is_ok());
}

#[test]
fn many_at_once_each_end_once_with_their_own_bytes() {
    many_concurrent(Bench::new(64, 4096));
    many_concurrent(Bench::in_memory(64, 4096));
}

fn many_concurrent(mut bench: Bench) {
    for round in 0..4_u8 {
        for tag in 0..64_u32 {
            let index = tag as usize * 4096;
            bench.memory.fill(index, &[round ^ tag as u8; 4096]);
            bench.payload(tag, PayloadUse::Source, &[(index, 4096)]);
        }
        for tag in 0..64_u32 {
            // An offset used in the last round, so that the operations overwrite each other's data.
            let offset = u64::from((tag * 13 + u32::from(round)) % 64) * 4096;
            let from = part(&bench.table, tag, 0, 4096);
            let write = FileRequest::Write { offset, source: from, is_durable: false };
            assert!(bench.io.submit(bench.slot, write, u64::from(tag)));
        }
        let completions = bench.wait();
        assert_eq!(completions.len(), 64);
        assert!(completions.into_values().all(|completion| completion.result.is_ok()));
    }
    let mut actual = vec![0; 64 * 4096];
    bench.file.read_at(0, &mut actual).unwrap();
    for tag in 0..64_usize {
        let offset = (tag * 13 + 3) % 64 * 4096;
        assert!(actual[offset..offset + 4096].iter().all(|&byte| byte == 3 ^ tag as u8), "{tag}");
    }
}

#[test]
fn requests_completed_at_submission_use_their_slot_until_they_are_reaped() {
    let mut bench = Bench::in_memory(2, 4096);
    bench.payload(0, PayloadUse::Source, &[(0, 4096)]);
    let mut submit = |token| {
        let from = part(&bench.table, 0, 0, 4096);
        bench.io.submit(
            bench.slot,
            FileRequest::Write { offset: 0, source: from, is_durable: false },
            token,
        )
    };
    assert_eq!([submit(1), submit(2), submit(3)], [true, true, false]);
    assert_eq!((bench.io.in_flight(), bench.io.arm()), (2, ArmResult::Pending));
    assert_eq!(bench.wait().len(), 2);
    assert_eq!(bench.io.in_flight(), 0);
}

#[test]
fn dropping_waits_for_requests_in_flight() {
    let mut bench = Bench::new(32, 4096);
    for tag in 0..32_u32 {
        bench.payload(tag, PayloadUse::Source, &[(tag as usize * 4096, 4096)]);
        let from = part(&bench.table, tag, 0, 4096);
        let write =
            FileRequest::Write { offset: u64::from(tag) * 4096, source: from, is_durable: true };
        assert!(bench.io.submit(bench.slot, write, 0));
    }
    let Bench { io, file, memory, table, folder, .. } = bench;
    drop(table);
    drop(io);
    assert_eq!(Arc::strong_count(&memory), 1, "no operation uses the file");
    assert_eq!(file.len().unwrap(), 32 * 4096);
    drop(folder);
}
