//! Disks of clients with many requests in flight, on files with operations that complete in any
//! order, fail, or are interrupted.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use suimon_image::testing::{Crash, FileContent, MemoryFile, WriteOutcome, is_filled};
use suimon_image::{ByteRange, DiskGeometry, Image, Linear};
use suimon_ports::testing::MemoryRecords;
use suimon_ports::{
    DiskOp, DiskOutcome, DiskRequest, ExpectedInput, FaultKind, PortFault, RedoRecords,
};
use suimon_quantity::Time;
use suimon_storage_qos::StoreSpec;

use crate::fakes::{Client, Dice, FakeFile, FakeIo, FakeQueue, Payloads, Trouble};
use crate::images::RecordedImage;
use crate::kinds::{CHILDREN, KINDS, Kind};
use crate::notices::FullChange;
use crate::qos_bench::{self, Load, MILLISECOND, STORE, limits};
use crate::{DiskLayer, DiskSpec, StorageEngine, StorageNotice};

/// Bytes of the region of one request, unless it is for eight regions. Requests in flight do not
/// overlap.
const REGION: u64 = 128 << 10;
const REGIONS: u64 = 32;
pub(crate) const SIZE: u64 = REGION * REGIONS;
pub(crate) const SECTOR: usize = 512;

/// Disk with a client.
pub(crate) struct Bench {
    pub(crate) work: StorageEngine,
    pub(crate) file: Arc<FakeFile>,
    pub(crate) disk: usize,
    pub(crate) queue: usize,
    pub(crate) client: Arc<Mutex<Client>>,
    pub(crate) payloads: Payloads,
    pub(crate) trouble: Arc<Mutex<Trouble>>,
    pub(crate) now: Time,
}

impl Bench {
    pub(crate) fn new(kind: Kind, seed: u64, capacity: usize) -> Self {
        Self::with_memory(kind, (kind.create)(), seed, capacity)
    }

    pub(crate) fn with_memory(kind: Kind, memory: MemoryFile, seed: u64, capacity: usize) -> Self {
        Self::with_queue(kind, memory, seed, capacity, FakeQueue::new(TAGS))
    }

    pub(crate) fn with_queue(
        kind: Kind,
        memory: MemoryFile,
        seed: u64,
        capacity: usize,
        queue: FakeQueue,
    ) -> Self {
        let image = (kind.open)(&memory);
        let record = MemoryRecords::default().create("disk", image.identity()).unwrap();
        let image = Box::new(RecordedImage::new(image, record));
        Self::with_image(kind, image, memory, seed, capacity, queue)
    }

    pub(crate) fn with_image(
        kind: Kind,
        image: Box<dyn Image>,
        memory: MemoryFile,
        seed: u64,
        capacity: usize,
        queue: FakeQueue,
    ) -> Self {
        let mut io = FakeIo::new(seed, capacity);
        io.is_sparse = kind.name == "raw";
        let fault_state = Arc::clone(&io.trouble);
        let mut work = StorageEngine::new(Box::new(io));
        memory.clear_log();
        let file = FakeFile::new(memory);
        let layer = DiskLayer { image, file: Arc::clone(&file) as _ };
        let parent = kind.parent.map(|byte| {
            let (logical_sector, physical_sector) = (512, 4096);
            let shape = DiskGeometry { size: SIZE, logical_sector, physical_sector, block: 0 };
            let file = FakeFile::new(MemoryFile::new(vec![byte; SIZE as usize]));
            DiskLayer { image: Box::new(Linear::new(shape, 0, true)), file }
        });
        let layers = [layer].into_iter().chain(parent).collect();
        let disk = work.add_disk(DiskSpec { layers }, None).unwrap();
        let (client, payloads) = (Arc::clone(&queue.client), Arc::clone(&queue.payloads));
        let queue = work.add_queue(disk, Box::new(queue)).unwrap();
        Self { work, file, disk, queue, client, payloads, trouble: fault_state, now: Time::ZERO }
    }

    pub(crate) fn submit(&self, tag: u32, op: DiskOp, range: ByteRange, payload: Vec<u8>) {
        self.payloads.lock().unwrap()[tag as usize] = payload;
        self.client.lock().unwrap().asks.push_back(DiskRequest { tag, op, range });
    }

    pub(crate) fn poll(&mut self) -> Vec<(u32, DiskOutcome)> {
        self.now = self.now + core::time::Duration::from_micros(1);
        self.work.poll(self.now);
        std::mem::take(&mut self.client.lock().unwrap().answers)
    }

    /// Polls until this request completes, and asserts that no other one does.
    pub(crate) fn wait(&mut self, tag: u32) -> DiskOutcome {
        for _ in 0..10_000 {
            if let Some((answered, outcome)) = self.poll().pop() {
                assert_eq!(answered, tag);
                return outcome;
            }
        }
        panic!("request {tag} is not answered")
    }

    pub(crate) fn run(&mut self, op: DiskOp, range: ByteRange, payload: Vec<u8>) -> DiskOutcome {
        self.submit(0, op, range, payload);
        self.wait(0)
    }

    pub(crate) fn read(&mut self, range: ByteRange) -> Vec<u8> {
        let outcome = self.run(DiskOp::Read, range, vec![0xee; range.len() as usize]);
        assert_eq!(outcome, DiskOutcome::Done);
        self.payloads.lock().unwrap()[0].clone()
    }

    pub(crate) fn notices(&mut self) -> Vec<StorageNotice> {
        std::iter::from_fn(|| self.work.poll_notice()).collect()
    }
}

pub(crate) fn range(offset: u64, len: u64) -> ByteRange {
    ByteRange::new(offset, len).unwrap()
}

pub(crate) const WRITE: DiskOp = DiskOp::Write { is_durable: false };

/// Possible content of a sector.
#[derive(Clone, Debug)]
pub(crate) struct Sector {
    /// Content that a read returns, unless a write is in flight.
    pub(crate) now: u8,
    /// Content that a crash may leave: the durable one and all later ones. `None` for any content,
    /// after a discard.
    pub(crate) may_be: Vec<Option<u8>>,
    /// Number of changes that preceded those in `may_be`.
    gone: usize,
    /// Number of completed changes.
    pub(crate) answered: usize,
}

/// Expected content of the whole disk.
pub(crate) struct Model {
    pub(crate) sectors: Vec<Sector>,
    pub(crate) dice: Dice,
    /// Requests in flight by tag, with the byte of a write.
    pub(crate) under_way: BTreeMap<u32, (DiskOp, ByteRange, u8)>,
    next_byte: u8,
    /// Flush in flight: the number of completed changes of each sector at its submission.
    pub(crate) flush: Option<Vec<usize>>,
}

const FLUSH_TAG: u32 = REGIONS as u32;
/// One tag per region, and one for the flush.
pub(crate) const TAGS: usize = REGIONS as usize + 1;

impl Model {
    pub(crate) fn new(kind: Kind, seed: u64) -> Self {
        let byte = kind.parent.unwrap_or(0);
        let sector = Sector { now: byte, may_be: vec![Some(byte)], gone: 0, answered: 1 };
        let sectors = vec![sector; SIZE as usize / SECTOR];
        Self { sectors, dice: Dice(seed), under_way: BTreeMap::new(), next_byte: 1, flush: None }
    }

    pub(crate) fn sectors(&mut self, range: ByteRange) -> &mut [Sector] {
        &mut self.sectors[range.offset() as usize / SECTOR..range.end() as usize / SECTOR]
    }

    /// Submits a random request that does not overlap those in flight.
    pub(crate) fn submit_random(&mut self, bench: &Bench) {
        let region = self.dice.below(REGIONS);
        let tag = region as u32;
        if self.under_way.contains_key(&tag) {
            return;
        }
        let sectors = REGION / SECTOR as u64;
        let first = self.dice.below(sectors);
        let count = 1 + self.dice.below(sectors - first);
        let range = if self.dice.below(24) == 0 {
            // Ranges of whole blocks of every format.
            range(region / 8 * 8 * REGION, 8 * REGION)
        } else {
            range(region * REGION + first * SECTOR as u64, count * SECTOR as u64)
        };
        if self.under_way.values().any(|(_, other, _)| other.overlaps(range)) {
            return;
        }
        let is_durable = self.dice.below(8) == 0;
        let op = match self.dice.below(12) {
            0..=4 => DiskOp::Write { is_durable },
            5..=8 => DiskOp::Read,
            9 => DiskOp::Discard,
            10 => {
                let may_unmap = self.dice.below(2) == 0;
                DiskOp::WriteZeroes { may_unmap, is_durable, only_if_fast: false }
            }
            _ if self.flush.is_none() => {
                self.flush = Some(self.sectors.iter().map(|sector| sector.answered).collect());
                let nothing = ByteRange::new(0, 0).unwrap();
                return bench.submit(FLUSH_TAG, DiskOp::Flush, nothing, Vec::new());
            }
            _ => return,
        };
        self.next_byte = self.next_byte.checked_add(1).unwrap_or(1);
        let byte = self.next_byte;
        let change = match op {
            DiskOp::Write { .. } => Some(Some(byte)),
            DiskOp::WriteZeroes { .. } => Some(Some(0)),
            DiskOp::Discard => Some(None),
            DiskOp::Read | DiskOp::Flush | DiskOp::Status { .. } => None,
        };
        if let Some(change) = change {
            for sector in self.sectors(range) {
                sector.may_be.push(change);
            }
        }
        self.under_way.insert(tag, (op, range, byte));
        bench.submit(tag, op, range, vec![byte; range.len() as usize]);
    }

    pub(crate) fn handle_answer(&mut self, bench: &Bench, tag: u32) {
        if tag == FLUSH_TAG {
            let answered = self.flush.take().unwrap();
            for (sector, answered) in self.sectors.iter_mut().zip(answered) {
                sector.handle_durable(answered);
            }
            return;
        }
        let (op, range, byte) = self.under_way.remove(&tag).unwrap();
        match op {
            DiskOp::Read => {
                let content = bench.payloads.lock().unwrap()[tag as usize].clone();
                for (sector, content) in self.sectors(range).iter().zip(content.chunks(SECTOR)) {
                    let is_right = is_filled(content, sector.now)
                        || matches!(sector.may_be.last(), Some(None));
                    assert!(is_right, "{range}: {} is {:?}", sector.now, content.first());
                }
            }
            DiskOp::Write { is_durable } => self.end_change(range, byte, is_durable),
            DiskOp::WriteZeroes { is_durable, .. } => self.end_change(range, 0, is_durable),
            DiskOp::Discard => {
                self.sectors(range).iter_mut().for_each(|sector| sector.answered += 1)
            }
            DiskOp::Flush | DiskOp::Status { .. } => {}
        }
    }

    fn end_change(&mut self, range: ByteRange, byte: u8, is_durable: bool) {
        for sector in self.sectors(range) {
            sector.now = byte;
            sector.answered += 1;
            if is_durable {
                sector.handle_durable(sector.answered);
            }
        }
    }

    /// Compares the file after a crash with the permitted content.
    pub(crate) fn check_crash(&self, kind: Kind, file: FileContent) {
        let mut bench = Bench::with_memory(kind, MemoryFile::new(file), 1, 64);
        let content = bench.read(range(0, SIZE));
        for (number, (content, sector)) in content.chunks(SECTOR).zip(&self.sectors).enumerate() {
            let is_filled_with =
                |&byte: &Option<u8>| byte.is_none_or(|byte| is_filled(content, byte));
            // A sector is never torn, and never older than the durable content.
            assert!(
                sector.may_be.iter().any(is_filled_with),
                "{}: sector {number} is {}, may be {:?}",
                kind.name,
                content[0],
                sector.may_be
            );
        }
    }
}

impl Sector {
    /// Records that the first `changes` changes are durable. All of them except the last one are
    /// superseded.
    pub(crate) fn handle_durable(&mut self, changes: usize) {
        let overwritten = changes.saturating_sub(1).saturating_sub(self.gone);
        self.may_be.drain(..overwritten);
        self.gone += overwritten;
    }
}

/// Runs clients, and simulates crashes at some moments.
fn run(kind: Kind, seed: u64, capacity: usize) {
    let mut bench = Bench::new(kind, seed, capacity);
    let before = bench.file.memory().content();
    let mut model = Model::new(kind, seed);
    for round in 0..400 {
        for _ in 0..model.dice.below(6) {
            model.submit_random(&bench);
        }
        for (tag, outcome) in bench.poll() {
            assert_eq!(outcome, DiskOutcome::Done, "{}: seed {seed}", kind.name);
            model.handle_answer(&bench, tag);
        }
        if round % 40 == 39 {
            let ops = bench.file.memory().log();
            let crash = Crash { before: &before, ops: &ops, started: ops.len() };
            for _ in 0..4 {
                let unsynced = crash.unsynced();
                let outcome = |random: &mut Dice| match random.below(3) {
                    0 => WriteOutcome::Persisted,
                    1 => WriteOutcome::Lost,
                    _ => WriteOutcome::Torn(random.below(u64::MAX)),
                };
                let fates: Vec<_> = (0..unsynced).map(|_| outcome(&mut model.dice)).collect();
                let mut order: Vec<_> = (0..unsynced).collect();
                for index in (1..unsynced).rev() {
                    order.swap(index, model.dice.below(index as u64 + 1) as usize);
                }
                model.check_crash(kind, crash.file(&order, &fates));
            }
        }
    }
    for _ in 0..10_000 {
        if model.under_way.is_empty() && model.flush.is_none() {
            break;
        }
        for (tag, _) in bench.poll() {
            model.handle_answer(&bench, tag);
        }
    }
    assert!(model.under_way.is_empty() && model.flush.is_none(), "{}: seed {seed}", kind.name);
    assert!(bench.notices().is_empty());
    close(&mut bench);
    // After an orderly close, the file contains all changes.
    let file = bench.file.memory().content();
    let mut reopened = Bench::with_memory(kind, MemoryFile::new(file), 1, 64);
    let content = reopened.read(range(0, SIZE));
    for (content, sector) in content.chunks(SECTOR).zip(&model.sectors) {
        assert!(content[0] == sector.now || matches!(sector.may_be.last(), Some(None)));
    }
}

pub(crate) fn close(bench: &mut Bench) {
    bench.work.close_disk(bench.disk);
    for _ in 0..10_000 {
        bench.poll();
        if let Some((disk, spec)) = bench.work.poll_closed_disk() {
            assert_eq!(disk, bench.disk);
            for DiskLayer { image, file } in spec.layers {
                image.close(&*file).unwrap();
            }
            assert_eq!(bench.work.poll_closed_queue().unwrap().0, bench.queue);
            return;
        }
    }
    panic!("the disk is not given back");
}

#[test]
fn what_was_answered_is_read_and_what_was_flushed_survives_every_crash() {
    for kind in KINDS.into_iter().chain(CHILDREN) {
        for seed in 0..4 {
            run(kind, seed, [3, 64][seed as usize % 2]);
        }
    }
}

#[test]
fn each_request_is_answered_once_whatever_fails() {
    for kind in KINDS {
        for seed in 0..8 {
            let spares_flushes = seed % 2 == 0;
            let mut bench = Bench::new(kind, seed, 8);
            *bench.trouble.lock().unwrap() = Trouble {
                one_in: 4,
                kind: Some(io::ErrorKind::Other),
                spares_flushes,
                ..Trouble::default()
            };
            let mut random = Dice(seed);
            let mut open = BTreeMap::new();
            let mut outcomes = BTreeMap::new();
            for round in 0..2000 {
                let tag = random.below(REGIONS) as u32;
                if round < 1000 && !open.contains_key(&tag) {
                    let range_of_tag = range(u64::from(tag) * REGION, REGION);
                    let (op, range_of_tag) = match random.below(5) {
                        0 => (DiskOp::Read, range_of_tag),
                        1 => (DiskOp::Write { is_durable: true }, range_of_tag),
                        2 => (DiskOp::Flush, range(0, 0)),
                        3 => (DiskOp::Discard, range_of_tag),
                        _ => (WRITE, range_of_tag),
                    };
                    bench.submit(tag, op, range_of_tag, vec![1; REGION as usize]);
                    open.insert(tag, op);
                }
                for (tag, outcome) in bench.poll() {
                    assert!(open.remove(&tag).is_some(), "{}: {tag} twice", kind.name);
                    *outcomes.entry(outcome == DiskOutcome::Done).or_insert(0) += 1;
                }
            }
            assert!(open.is_empty(), "{}: seed {seed}: {open:?}", kind.name);
            assert!(outcomes.len() == 2, "{}: some fail, some do not: {outcomes:?}", kind.name);
            assert!(!bench.notices().is_empty());
            // After the faults have ended, the disk works, unless a flush has failed.
            bench.trouble.lock().unwrap().kind = None;
            let written = bench.run(WRITE, range(0, 4096), vec![7; 4096]);
            assert_eq!(written == DiskOutcome::Done, spares_flushes, "{}", kind.name);
            let read = bench.read(range(0, 4096));
            assert!(read == [7; 4096] || !spares_flushes);
            close(&mut bench);
        }
    }
}

#[test]
fn a_full_file_system_is_told_as_that() {
    for kind in KINDS {
        let mut bench = Bench::new(kind, 1, 8);
        bench.trouble.lock().unwrap().one_in = 1;
        bench.trouble.lock().unwrap().kind = Some(io::ErrorKind::StorageFull);
        let outcome = bench.run(WRITE, range(0, 4096), vec![7; 4096]);
        assert_eq!(outcome, DiskOutcome::NoSpace, "{}", kind.name);
        let notices = bench.notices();
        assert!(matches!(&notices[..], [StorageNotice::DiskFull { change: FullChange::Full, .. }]));
    }
}

#[test]
fn a_queue_that_breaks_is_given_back_when_its_requests_have_ended() {
    let mut bench = Bench::new(KINDS[0], 1, 8);
    bench.trouble.lock().unwrap().is_stalled = true;
    bench.submit(0, WRITE, range(0, 4096), vec![1; 4096]);
    bench.poll();
    let fault = PortFault { kind: FaultKind::ProtocolViolation, detail: "its ring".to_owned() };
    bench.client.lock().unwrap().fault = Some(fault);
    bench.submit(1, WRITE, range(4096, 4096), vec![1; 4096]);
    for _ in 0..10 {
        assert!(bench.poll().is_empty());
        assert!(bench.work.poll_closed_queue().is_none(), "its payload is in use");
    }
    assert!(matches!(&bench.notices()[..], [StorageNotice::QueueFault { queue: 0, .. }]));
    bench.trouble.lock().unwrap().is_stalled = false;
    let mut answers = Vec::new();
    for _ in 0..100 {
        answers.extend(bench.poll());
    }
    assert_eq!(answers.len(), 2, "what it had asked before is answered");
    assert_eq!(bench.work.poll_closed_queue().unwrap().0, bench.queue);
    assert_eq!(bench.work.tally(bench.disk).unwrap().writes.requests, 2);
}

#[test]
fn a_queue_that_has_nothing_is_waited_for_and_woken() {
    let mut bench = Bench::new(KINDS[0], 1, 8);
    assert!(bench.work.arm(), "nothing is under way");
    bench.submit(0, WRITE, range(0, 512), vec![1; 512]);
    assert!(bench.poll().is_empty(), "nobody looks at a queue that is waited for");
    bench.work.wake_queue(bench.queue);
    assert_eq!(bench.wait(0), DiskOutcome::Done);
    // A busy worker stops polling an empty queue, and still receives its next request.
    for _ in 0..2000 {
        bench.poll();
    }
    bench.submit(0, WRITE, range(0, 512), vec![1; 512]);
    bench.work.wake_queue(bench.queue);
    assert_eq!(bench.wait(0), DiskOutcome::Done);
    let counters = bench.work.tally(bench.disk).unwrap().writes;
    assert_eq!((counters.requests, counters.bytes), (2, 1024));
    assert!(counters.latency_ns > 0);
}

/// A client that receives completions can submit further requests without waking the worker.
#[test]
fn a_queue_that_is_waited_for_is_polled_when_its_client_has_answers() {
    let mut bench = Bench::new(KINDS[0], 1, 8);
    bench.trouble.lock().unwrap().is_stalled = true;
    bench.submit(0, WRITE, range(0, 512), vec![1; 512]);
    bench.poll();
    assert!(!bench.work.arm() && bench.work.has_waiting(), "its answer is to come");
    bench.trouble.lock().unwrap().is_stalled = false;
    assert_eq!(bench.wait(0), DiskOutcome::Done);
    assert!(!bench.work.has_waiting() && bench.work.expects() == ExpectedInput::Requests);
    bench.submit(1, WRITE, range(0, 512), vec![1; 512]);
    assert_eq!(bench.wait(1), DiskOutcome::Done, "nobody woke it");
}

/// Polling such a queue costs a system call, and a client with requests in flight may be waiting
/// for their completions.
#[test]
fn a_queue_with_a_descriptor_is_looked_at_when_all_that_it_asked_is_answered() {
    let mut queue = FakeQueue::new(TAGS);
    queue.is_polled_by_fd = true;
    let memory = (KINDS[0].create)();
    let mut bench = Bench::with_queue(KINDS[0], memory, 1, 8, queue);
    for tag in [0, 1] {
        bench.submit(tag, WRITE, range(u64::from(tag) * 512, 512), vec![1; 512]);
    }
    bench.trouble.lock().unwrap().is_stalled = true;
    (0..2).for_each(|_| assert!(bench.poll().is_empty()));
    bench.trouble.lock().unwrap().is_stalled = false;
    let mut answered = 0;
    while answered < 2 {
        answered += bench.poll().len();
        // The worker waits for the queue while requests are in flight. After the last completion,
        // it polls the queue.
        assert_eq!(bench.work.has_waiting(), answered < 2);
    }
    bench.submit(2, WRITE, range(0, 512), vec![1; 512]);
    assert_eq!(bench.wait(2), DiskOutcome::Done, "nobody woke it");
}

/// Polling ends after the worker's poll budget (a time), and not after a number of polls.
#[test]
fn a_worker_without_work_polls_a_queue_until_it_sleeps() {
    let mut bench = Bench::new(KINDS[0], 1, 8);
    assert_eq!(bench.run(WRITE, range(0, 512), vec![1; 512]), DiskOutcome::Done);
    bench.work.note_busy(false);
    for _ in 0..5000 {
        bench.poll();
    }
    assert!(bench.work.expects() != ExpectedInput::None && !bench.work.has_waiting());
    assert!(bench.work.arm(), "it sleeps");
    assert!(bench.work.has_waiting());
    bench.work.wake_queue(bench.queue);
    bench.work.note_busy(true);
    for _ in 0..1100 {
        bench.poll();
    }
    assert!(bench.work.has_waiting(), "others have the time that a queue without requests costs");
}

/// Returns the outcomes of requests for the first sector, in order.
fn answers(image: Box<dyn Image>, file: Arc<FakeFile>, ops: &[DiskOp]) -> Vec<DiskOutcome> {
    let mut work = StorageEngine::new(Box::new(FakeIo::new(1, 8)));
    let disk = work.add_disk(DiskSpec { layers: vec![DiskLayer { image, file }] }, None).unwrap();
    let queue = FakeQueue::new(ops.len());
    let client = Arc::clone(&queue.client);
    queue.payloads.lock().unwrap().fill(vec![0; 512]);
    work.add_queue(disk, Box::new(queue)).unwrap();
    for (tag, &op) in (0..).zip(ops) {
        client.lock().unwrap().asks.push_back(DiskRequest { tag, op, range: range(0, 512) });
    }
    for _ in 0..100 {
        work.poll(Time::ZERO);
    }
    let mut answers = client.lock().unwrap().answers.clone();
    answers.sort_unstable_by_key(|(tag, _)| *tag);
    answers.into_iter().map(|(_, outcome)| outcome).collect()
}

const ZEROS: DiskOp =
    DiskOp::WriteZeroes { may_unmap: true, is_durable: false, only_if_fast: false };
const FAST_ZEROS: DiskOp =
    DiskOp::WriteZeroes { may_unmap: true, is_durable: false, only_if_fast: true };

#[test]
fn what_is_read_only_says_so() {
    use DiskOutcome::{Done, ReadOnly};
    let shape = DiskGeometry { size: SIZE, logical_sector: 512, physical_sector: 512, block: 0 };
    for open in [FakeFile::new, FakeFile::solid] {
        let file = open(MemoryFile::new(vec![5; SIZE as usize]));
        let ops = [WRITE, DiskOp::Discard, ZEROS, FAST_ZEROS, DiskOp::Read];
        let outcomes = answers(Box::new(Linear::new(shape, 0, true)), Arc::clone(&file), &ops);
        assert_eq!(outcomes, [ReadOnly, ReadOnly, ReadOnly, ReadOnly, Done]);
        assert!(file.memory().log().is_empty());
    }
}

#[test]
fn zeros_that_would_have_to_be_written_are_refused_who_wants_them_fast() {
    use DiskOutcome::{Done, Unsupported};
    for kind in KINDS {
        for (open, fast) in [(FakeFile::new as fn(_) -> _, Done), (FakeFile::solid, Unsupported)] {
            let memory = (kind.create)();
            let image = (kind.open)(&memory);
            let outcomes = answers(image, open(memory), &[ZEROS, FAST_ZEROS]);
            assert_eq!(outcomes, [Done, fast], "{}", kind.name);
        }
    }
}

/// The lack of support for holes may be detected only by the first attempt.
#[test]
fn a_discard_writes_nothing_and_fast_zeros_fail_where_holes_are_refused() {
    let mut bench = Bench::new(KINDS[0], 1, 8);
    assert_eq!(bench.run(WRITE, range(0, 4096), vec![7; 4096]), DiskOutcome::Done);
    bench.trouble.lock().unwrap().cannot_zero = true;
    let ops = bench.file.memory().log().len();
    assert_eq!(bench.run(DiskOp::Discard, range(0, 4096), Vec::new()), DiskOutcome::Done);
    let fast = bench.run(FAST_ZEROS, range(0, 4096), Vec::new());
    assert_eq!(fast, DiskOutcome::Unsupported);
    assert_eq!(bench.file.memory().log().len(), ops);
    assert_eq!(bench.read(range(0, 4096)), [7; 4096]);
    assert!(bench.notices().is_empty());
}

/// Otherwise, requests that a queue delivers in the same iteration would be queued although there
/// is room.
#[test]
fn a_store_hears_of_what_ended_before_queues_are_looked_at() {
    let store = StoreSpec { depth_min: 8, depth_max: 8, ..StoreSpec::default() };
    let mut bench = qos_bench::Bench::new(1, &store, 8, 200_000);
    bench.add_disk(0, 0, limits(0, 0));
    bench.add_seat(0, Load::reads(4096, 8));
    bench.run(1000);
    let in_flight = |work: &StorageEngine| work.store_status(STORE).unwrap().in_flight;
    assert_eq!(in_flight(&bench.engines[0]), 8);
    bench.device().now += MILLISECOND;
    let now = bench.time();
    let work = &mut bench.engines[0];
    work.now = now;
    assert!(work.take_in());
    work.dispatch_ready();
    assert_eq!(in_flight(work), 0);
}
