//! Tests of the ring on real files.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use suimon_image::{ByteRange, ImageFile};
use suimon_ports::{
    ArmResult, DiskFile, FileCompletion, FileIo, FileRequest, FileSlot, PayloadRange,
};

use crate::host_file_tests::folder;
use crate::store_free_space::StoreFreeSpace;
use crate::{FileAccess, HostFile, PayloadTable, PayloadUse, Segment, UringFileIo};

/// Ring, a file in it, and memory for payloads.
pub(crate) struct Bench {
    pub(crate) io: UringFileIo,
    pub(crate) file: Arc<HostFile>,
    pub(crate) slot: FileSlot,
    pub(crate) memory: Arc<Memory>,
    pub(crate) table: PayloadTable,
    pub(crate) folder: tempfile::TempDir,
}

/// Bytes to which no reference exists while the kernel accesses them.
pub(crate) struct Memory(Vec<std::cell::UnsafeCell<[u8; 16]>>);

#[allow(unsafe_code, reason = "tests share memory with the kernel as clients do")]
mod shared {
    use super::Memory;

    // SAFETY: tests access the bytes only when no operation is in flight.
    unsafe impl Send for Memory {}
    // SAFETY: as above.
    unsafe impl Sync for Memory {}

    impl Memory {
        pub(super) fn pointer(&self, offset: usize) -> *mut u8 {
            let start = self.0.as_ptr().cast::<u8>().cast_mut();
            assert!(offset <= self.0.len() * 16);
            // SAFETY: the offset is within the memory.
            unsafe { start.add(offset) }
        }

        pub(crate) fn bytes(&self, offset: usize, len: usize) -> Vec<u8> {
            assert!(offset + len <= self.0.len() * 16);
            // SAFETY: no operation is in flight when tests read.
            unsafe { core::slice::from_raw_parts(self.pointer(offset), len) }.to_vec()
        }

        pub(crate) fn fill(&self, offset: usize, bytes: &[u8]) {
            assert!(offset + bytes.len() <= self.0.len() * 16);
            // SAFETY: as in `bytes`.
            unsafe { self.pointer(offset).copy_from(bytes.as_ptr(), bytes.len()) };
        }
    }
}

const MEMORY: usize = 1 << 20;

impl Bench {
    pub(crate) fn new(capacity: u16, unit: u32) -> Self {
        Self::within(folder(), capacity, unit)
    }

    /// Creates a bench with a file in memory (tmpfs).
    pub(crate) fn in_memory(capacity: u16, unit: u32) -> Self {
        let bench = Self::within(tempfile::tempdir_in("/dev/shm").unwrap(), capacity, unit);
        assert!(bench.file.is_in_memory());
        bench
    }

    fn within(folder: tempfile::TempDir, capacity: u16, unit: u32) -> Self {
        let path = folder.path().join("image");
        let file = Arc::new(HostFile::open(&path, FileAccess::Create, unit).unwrap());
        let mut io = UringFileIo::new(capacity, 4).unwrap();
        let slot = io.add_file(Arc::clone(&file) as Arc<dyn DiskFile>).unwrap();
        let cells = (0..MEMORY / 16).map(|_| std::cell::UnsafeCell::new([0; 16])).collect();
        let memory = Arc::new(Memory(cells));
        let table = PayloadTable::new(64, 4, Arc::clone(&memory) as _);
        Self { io, file, slot, memory, table, folder }
    }

    #[allow(unsafe_code, reason = "says where payloads lie")]
    pub(crate) fn payload(&mut self, tag: u32, usage: PayloadUse, segments: &[(usize, usize)]) {
        let memory = &self.memory;
        let segments =
            segments.iter().map(|&(offset, len)| Segment { pointer: memory.pointer(offset), len });
        // SAFETY: the segments are in memory that the table holds.
        unsafe { self.table.set(tag, usage, segments) };
    }

    pub(crate) fn wait(&mut self) -> BTreeMap<u64, FileCompletion> {
        self.io.submit_queued().unwrap();
        let mut completions = Vec::new();
        while self.io.in_flight() > 0 {
            if self.io.poll_completions(&mut completions) == 0 && self.io.arm() == ArmResult::Armed
            {
                let readable = wait_readable(&self.io, Duration::from_secs(90));
                assert!(readable, "nothing ended in 90 s: {completions:?}");
            }
            self.io.submit_queued().unwrap();
        }
        self.io.poll_completions(&mut completions);
        completions.into_iter().map(|completion| (completion.token, completion)).collect()
    }

    pub(crate) fn run(
        &mut self,
        op: impl FnOnce(&PayloadTable) -> FileRequest<'_>,
    ) -> FileCompletion {
        assert!(self.io.submit(self.slot, op(&self.table), 7));
        self.wait().remove(&7).unwrap()
    }
}

fn wait_readable(io: &UringFileIo, limit: Duration) -> bool {
    let fd = io.wake_fd();
    let limit = rustix::event::Timespec::try_from(limit).unwrap();
    poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

pub(crate) fn part(payloads: &PayloadTable, tag: u32, from: u64, len: u64) -> PayloadRange<'_> {
    PayloadRange { payloads, tag, offset: from, len }
}

fn sample(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * index >> 7) as u8 | 1).collect()
}

#[test]
fn payloads_of_any_memory_layout_are_written_and_read_back() {
    for unit in [1, 512, 4096] {
        for mut bench in [Bench::new(8, unit), Bench::in_memory(8, unit)] {
            let bytes = sample(8192);
            // Aligned as devices require, and unaligned.
            for first in [4096, 1, 4095] {
                bench.memory.fill(100, &bytes[..first]);
                bench.memory.fill(300_001, &bytes[first..]);
                bench.payload(3, PayloadUse::Source, &[(100, first), (300_001, 8192 - first)]);
                let completion = bench.run(|table| FileRequest::Write {
                    offset: 4096,
                    source: part(table, 3, 0, 8192),
                    is_durable: first == 1,
                });
                assert_eq!(completion.result.unwrap(), [0; 0]);
                bench.payload(3, PayloadUse::Destination, &[(500_003, 8000), (600_000, 192)]);
                bench
                    .run(|table| FileRequest::Read {
                        offset: 4096,
                        destination: part(table, 3, 0, 8192),
                    })
                    .result
                    .unwrap();
                let actual =
                    [bench.memory.bytes(500_003, 8000), bench.memory.bytes(600_000, 192)].concat();
                assert!(actual == bytes, "unit {unit}, first piece {first}");
                bench.memory.fill(500_003, &[0; 8000]);
            }
        }
    }
}

/// Requests with misaligned payloads share a small number of buffers. A read beyond the end of the
/// file returns none of a buffer's earlier bytes.
#[test]
fn misaligned_payloads_share_buffers() {
    const LEN: u64 = 256 << 10;
    for mut bench in [Bench::new(8, 4096), Bench::in_memory(8, 4096)] {
        if bench.file.memory_alignment() == 1 {
            // Through the page cache, no payload is misaligned, except for lists that are too long.
            continue;
        }
        let bytes = sample(LEN as usize);
        bench.memory.fill(1, &bytes);
        for _ in 0..20 {
            bench.payload(0, PayloadUse::Source, &[(1, LEN as usize)]);
            let completion = bench.run(|table| FileRequest::Write {
                offset: 0,
                source: part(table, 0, 0, LEN),
                is_durable: false,
            });
            completion.result.unwrap();
            bench.payload(1, PayloadUse::Destination, &[(600_001, LEN as usize)]);
            let offset = LEN / 2;
            bench
                .run(|table| FileRequest::Read { offset, destination: part(table, 1, 0, LEN) })
                .result
                .unwrap();
            let actual = bench.memory.bytes(600_001, LEN as usize);
            let (read, rest) = actual.split_at(LEN as usize / 2);
            assert!(read == &bytes[LEN as usize / 2..] && rest.iter().all(|byte| *byte == 0));
            bench.memory.fill(600_001, &[9; LEN as usize]);
        }
        assert_eq!(bench.io.buffers.allocated_bytes, LEN as usize);
    }
}

#[test]
fn a_device_starts_before_the_batch_is_complete() {
    let mut bench = Bench::new(8, 4096);
    bench.file.write_at(0, &sample(8192)).unwrap();
    bench.payload(0, PayloadUse::Destination, &[(0, 4096)]);
    for token in 0..3 {
        let op = FileRequest::Read { offset: 4096, destination: part(&bench.table, 0, 0, 4096) };
        assert!(bench.io.submit(bench.slot, op, token));
    }
    // `submit_queued` was not called.
    assert!(wait_readable(&bench.io, Duration::from_secs(90)));
    let mut completions = Vec::new();
    bench.io.poll_completions(&mut completions);
    assert!(!completions.is_empty());
}

#[test]
fn behind_the_end_of_a_file_are_zeros() {
    let units = [1, 512].into_iter();
    for mut bench in units.flat_map(|unit| [Bench::new(8, unit), Bench::in_memory(8, unit)]) {
        bench.file.write_at(0, &sample(1000)).unwrap();
        bench.memory.fill(0, &[9; 8192]);
        bench.payload(0, PayloadUse::Destination, &[(0, 512), (512, 7680)]);
        bench
            .run(|table| FileRequest::Read { offset: 0, destination: part(table, 0, 0, 4096) })
            .result
            .unwrap();
        assert!(bench.memory.bytes(0, 1000) == sample(1000));
        assert_eq!(bench.memory.bytes(1000, 3096), [0; 3096]);
        assert_eq!(bench.memory.bytes(4096, 1), [9]);
        let range = ByteRange::new(8192, 4096).unwrap();
        assert_eq!(bench.run(|_| FileRequest::ReadBytes(range)).result.unwrap(), [0; 4096]);
    }
}

#[test]
fn bytes_zeros_growth_and_flush() {
    let mut bench = Bench::new(8, 4096);
    let bytes = sample(16_384);
    let write = FileRequest::WriteBytes { offset: 0, bytes: bytes.clone() };
    bench.run(|_| write).result.unwrap();
    for may_unmap in [true, false] {
        let range = ByteRange::new(4096, 4096).unwrap();
        bench.run(|_| FileRequest::Zero { range, may_unmap, only_if_fast: false }).result.unwrap();
    }
    bench.run(|_| FileRequest::Flush).result.unwrap();
    bench.run(|_| FileRequest::Extend { len: 40_960, required_end: 40_960 }).result.unwrap();
    bench.run(|_| FileRequest::Extend { len: 8192, required_end: 8192 }).result.unwrap();
    assert_eq!(bench.file.len().unwrap(), 40_960);
    let mut actual = vec![9; 40_960];
    bench.file.read_at(0, &mut actual).unwrap();
    let expected = [&bytes[..4096], &[0; 4096], &bytes[8192..], &[0; 24_576]].concat();
    assert!(actual == expected);
    let empty = ByteRange::new(4096, 0).unwrap();
    bench
        .run(|_| FileRequest::Zero { range: empty, may_unmap: true, only_if_fast: false })
        .result
        .unwrap();
}

#[test]
fn a_file_that_grows_keeps_its_holes() {
    use std::os::unix::fs::MetadataExt;
    const HOLE: u64 = 8 << 20;
    let mut bench = Bench::new(8, 4096);
    bench.file.set_len(HOLE).unwrap();
    bench.run(|_| FileRequest::Extend { len: HOLE + 65_536, required_end: HOLE }).result.unwrap();
    assert_eq!(bench.file.len().unwrap(), HOLE + 65_536);
    let used = std::fs::metadata(bench.folder.path().join("image")).unwrap().blocks() * 512;
    assert!(used < HOLE, "{used} bytes are used");
}

/// Appending zeros must not overwrite data that other operations have written beyond the end
/// meanwhile.
#[test]
fn an_extension_overwrites_nothing_that_was_written_meanwhile() {
    const END: u64 = 1 << 20;
    const LEN: u64 = 5 << 20;
    for can_allocate in [true, false] {
        let folder = folder();
        let mut bench = Bench::within(folder, 8, 4096);
        let path = bench.folder.path().join("full");
        // No space is known to be free in the store.
        let file = HostFile::open(&path, FileAccess::Create, 4096).unwrap();
        let file = Arc::new(file.with_store_free_space(Arc::new(StoreFreeSpace::default())));
        file.set_len(END).unwrap();
        if !can_allocate {
            file.record_allocation_refused();
        }
        let slot = bench.io.add_file(Arc::clone(&file) as Arc<dyn DiskFile>).unwrap();
        let extend = FileRequest::Extend { len: LEN, required_end: END + 4096 };
        let extension = bench.io.create_operation(slot, extend, 1).unwrap();
        let data = sample(8192);
        file.write_at(LEN - 8192, &data).unwrap();
        assert!(bench.io.start(extension));
        bench.wait().remove(&1).unwrap().result.unwrap();
        assert!(file.len().unwrap() >= LEN);
        let mut actual = vec![0; 8192];
        file.read_at(LEN - 8192, &mut actual).unwrap();
        assert!(actual == data, "allocation: {can_allocate}");

        // Without a write in between, the new part reads as zeros.
        let extend = FileRequest::Extend { len: LEN + END, required_end: LEN + END };
        assert!(bench.io.submit(slot, extend, 2));
        bench.wait().remove(&2).unwrap().result.unwrap();
        assert_eq!(file.len().unwrap(), LEN + END);
        let mut actual = vec![9; END as usize];
        file.read_at(LEN, &mut actual).unwrap();
        assert!(actual.iter().all(|&byte| byte == 0), "allocation: {can_allocate}");
        bench.io.remove_file(slot);
    }
}

/// Neither a worker nor a job repeats a failed flush.
#[test]
fn no_flush_succeeds_after_a_failed_one() {
    let mut bench = Bench::new(4, 4096);
    bench.run(|_| FileRequest::Flush).result.unwrap();
    bench.file.flush().unwrap();
    let failure = bench.file.flush_failure().unwrap();
    failure.record(&std::io::Error::from_raw_os_error(libc::EIO));
    let failed = bench.run(|_| FileRequest::Flush).result.unwrap_err().to_string();
    assert!(failed.contains("a flush has failed") && failed.contains("os error 5"), "{failed}");
    assert!(bench.file.flush().is_err());
    bench.file.drop_page_cache().unwrap();
}
