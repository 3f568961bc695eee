//! Crash consistency: power failure at any point. Data reported as durable is present; all other
//! data has its old or new contents.

use crate::support;
use proptest::prelude::*;
use suimon_image::testing::{FileContent, LoggedChange, MemoryFile, TestDisk, is_filled};
use suimon_image::{Commit, CommitOutcome, Image, ImageFile, Step};
use suimon_vhdx::{NewVhdx, Vhdx, check, resize};

use crate::power::{Numbers, flush_boundaries, remains};
use crate::support::*;

const SECTOR: u64 = 512;
const DISK: u64 = 4 * MB + 4096;

/// Request of the guest; offsets and lengths in sectors.
#[derive(Clone, Debug)]
enum Request {
    Write { at: u64, sectors: u64 },
    Discard { at: u64, sectors: u64 },
    Flush,
    Reopen,
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let sectors = DISK / 4096;
    let extent = (0..sectors, prop_oneof![1..8_u64, 200..600_u64, Just(sectors)]);
    let request = prop_oneof![
        5 => extent.clone().prop_map(|(at, sectors)| Request::Write { at, sectors }),
        2 => extent.prop_map(|(at, sectors)| Request::Discard { at, sectors }),
        3 => Just(Request::Flush),
        1 => Just(Request::Reopen),
    ];
    prop::collection::vec(request, 4..24)
}

/// Possible contents of each sector: pairs of the request that wrote a value, and the value.
type History = Vec<Vec<(usize, u8)>>;

/// Simulated guest: a disk and the history of its sectors.
struct Guest {
    file: MemoryFile,
    before: FileContent,
    history: History,
    /// Number of file operations that had begun before each request.
    begun: Vec<usize>,
    /// Commits: number of file operations at which a request was reported as durable, and the
    /// number of the request.
    durable: Vec<(usize, usize)>,
}

impl Guest {
    fn new(spec: &NewVhdx) -> Self {
        let file = created(spec);
        file.clear_log();
        let initial =
            |sector: u64| if spec.parent.is_some() { parent_byte(sector * SECTOR) } else { 0 };
        let history = (0..spec.size / SECTOR).map(|sector| vec![(0, initial(sector))]).collect();
        let before = file.content();
        Self { file, before, history, begun: vec![0], durable: vec![(0, 0)] }
    }

    fn run(&mut self, requests: &[Request]) {
        let mut opened = 1;
        let mut image = Vhdx::open(&self.file, &guids(opened)).unwrap();
        for (number, request) in (1..).zip(requests) {
            self.begun.push(self.file.log().len());
            let clip = |unit: u64, sectors: u64| {
                let offset = unit * 4096;
                (offset, (sectors * 4096).min(DISK - offset))
            };
            match *request {
                Request::Write { at, sectors } => {
                    let (offset, len) = clip(at, sectors);
                    let byte = (number % 250) as u8 + 1;
                    let mut disk = disk(image, &self.file);
                    disk.write(offset, &vec![byte; len as usize]).unwrap();
                    image = disk.image;
                    self.set(number, offset, len, byte);
                }
                Request::Discard { at, sectors } => {
                    let (offset, len) = clip(at, sectors);
                    let mut retained = Vec::new();
                    image.discard(range(offset, len), &mut retained).unwrap();
                    let mut position = offset;
                    for range in retained.into_iter().chain([range(offset + len, 0)]) {
                        self.set(number, position, range.offset() - position, 0);
                        position = range.end();
                    }
                }
                Request::Flush => self.flush(&mut image, number),
                Request::Reopen => {
                    if number % 2 == 0 {
                        image.close(&self.file).unwrap();
                        self.durable.push((self.file.log().len(), number));
                    } else {
                        self.flush(&mut image, number);
                    }
                    opened += 1;
                    image = Vhdx::open(&self.file, &guids(opened)).unwrap();
                }
            }
        }
    }

    fn set(&mut self, request: usize, offset: u64, len: u64, byte: u8) {
        for sector in offset / SECTOR..(offset + len) / SECTOR {
            self.history[sector as usize].push((request, byte));
        }
    }

    /// Commits step by step, and records when the commit becomes durable. Steps that may overlap
    /// are executed in reverse order, and some of the freed space is zeroed before and after.
    fn flush(&mut self, image: &mut Vhdx, request: usize) {
        self.zero_freed(image, request % 2);
        self.commit(image, request);
        self.zero_freed(image, request % 3);
    }

    fn zero_freed(&self, image: &mut Vhdx, ranges: usize) {
        for _ in 0..ranges {
            let Some(range) = image.poll_zeroing() else { return };
            self.file.zero(range.offset(), range.len()).unwrap();
            image.handle_zeroed(true);
        }
    }

    fn commit(&mut self, image: &mut Vhdx, request: usize) {
        let Some(commit) = image.begin_commit() else {
            self.file.flush().unwrap();
            self.durable.push((self.file.log().len(), request));
            return;
        };
        let mut steps = commit.steps;
        steps.chunk_by_mut(Step::may_run_concurrently).for_each(<[Step]>::reverse);
        for step in steps {
            match step {
                Step::Write { offset, bytes } => self.file.write_at(offset, &bytes).unwrap(),
                Step::Extend { len, .. } if self.file.len().unwrap() < len => {
                    self.file.set_len(len).unwrap();
                }
                Step::Extend { .. } => {}
                Step::Zero(range) => self.file.zero(range.offset(), range.len()).unwrap(),
                Step::Flush => self.file.flush().unwrap(),
                Step::DurableMarker => self.durable.push((self.file.log().len(), request)),
            }
        }
        image.handle_commit(CommitOutcome::Done);
    }

    /// Asserts that the contents after a power failure, when `started` file operations had begun,
    /// are permitted.
    fn check_contents(&self, started: usize, bytes: &[u8]) {
        let retained =
            self.durable.iter().filter(|(index, _)| *index <= started).map(|(_, index)| *index);
        let retained = retained.max().unwrap_or(0);
        let last = self.begun.partition_point(|index| *index < started.max(1)) - 1;
        for (sector, history) in self.history.iter().enumerate() {
            let offset = sector * SECTOR as usize;
            let actual = &bytes[offset..offset + SECTOR as usize];
            let durable = history.iter().rfind(|(index, _)| *index <= retained);
            let later = history.iter().filter(|(index, _)| *index > retained && *index <= last);
            let is_right =
                durable.into_iter().chain(later).any(|(_, byte)| is_filled(actual, *byte));
            assert!(
                is_right,
                "sector {sector} is {actual:02x?} after {started} changes; {retained} requests are \
durable of {last}, it was {history:?}"
            );
        }
    }
}

/// Opens the image after a crash, first for reading, then for writing. Returns the contents of the
/// disk. `index` distinguishes the GUIDs.
fn reopened(bytes: FileContent, index: u128) -> Vec<u8> {
    let file = MemoryFile::new(bytes);
    let report = check(&file);
    assert!(report.faults.iter().all(|fault| fault.field.starts_with("Header.")), "{report:?}");
    let read = content(Vhdx::open_read_only(&file).unwrap(), &file);
    let written = content(Vhdx::open(&file, &guids(index)).unwrap(), &file);
    assert!(read == written, "replay in memory and in the file differ");
    read
}

fn survives(spec: &NewVhdx, requests: &[Request], seed: u64) {
    let mut guest = Guest::new(spec);
    guest.run(requests);
    let ops = guest.file.log();
    let mut numbers = Numbers::new(seed);
    let mut points = flush_boundaries(&ops);
    points.extend((0..6).map(|_| numbers.below(ops.len())));
    for started in points {
        for bytes in remains(&guest.before, &ops, started, &mut numbers) {
            guest.check_contents(started, &reopened(bytes, 1000));
        }
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_dynamic_image_survives(requests in requests(), seed: u64) {
        survives(&dynamic(DISK), &requests, seed);
    }

    #[test]
    fn a_child_survives(requests in requests(), seed: u64) {
        survives(&child(DISK), &requests, seed);
    }

    #[test]
    fn larger_sectors_and_blocks_survive(requests in requests(), seed: u64) {
        let large = NewVhdx { logical_sector_bytes: 4096, block_bytes: 2 * MB, ..child(DISK) };
        survives(&large, &requests, seed);
    }
}

/// Returns an image that was not closed, with a log entry that is partially applied, and the
/// contents of its disk.
fn dirty(spec: &NewVhdx) -> (MemoryFile, Vec<u8>) {
    let file = created(spec);
    let mut parent = read_parent;
    let image = Vhdx::open(&file, &guids(1)).unwrap();
    let mut disk = TestDisk { image, file: &file, parent: Some(&mut parent) };
    disk.write(MB - 512, &[1; 1024]).unwrap();
    disk.write(3 * MB, &[2; 4096]).unwrap();
    disk.flush().unwrap();
    let expected = disk.read(range(0, spec.size)).unwrap();
    (MemoryFile::new(file.content()), expected)
}

/// Calls `judge` for each point of a file's history, with each simulated state of the file after a
/// power failure.
fn every_remains(
    before: &FileContent,
    ops: &[LoggedChange],
    mut judge: impl FnMut(usize, FileContent),
) {
    let mut numbers = Numbers::new(0x5eed);
    for started in 0..=ops.len() {
        for bytes in remains(before, ops, started, &mut numbers) {
            judge(started, bytes);
        }
    }
}

#[test]
fn replay_and_close_can_be_interrupted_anywhere() {
    for spec in [dynamic(DISK), child(DISK)] {
        let (file, expected) = dirty(&spec);
        let before = file.content();
        let mut disk = disk(Vhdx::open(&file, &guids(2)).unwrap(), &file);
        // Rewrites existing contents in a new block: the file grows and is truncated again.
        let same = range(2 * MB, MB);
        disk.write(same.offset(), &expected[same.offset() as usize..same.end() as usize]).unwrap();
        disk.image.close(&file).unwrap();
        every_remains(&before, &file.log(), |started, bytes| {
            assert!(reopened(bytes, 1000) == expected, "after {started} changes");
        });
    }
}

#[test]
fn resizing_leaves_one_of_the_two_sizes() {
    let (file, expected) = dirty(&dynamic(DISK));
    let old = file.content();
    // The last size requires moving the BAT.
    for size in [DISK + 2 * MB, MB + 512, 150 << 30] {
        let file = MemoryFile::new(old.clone());
        resize(&file, size, &guids(2)).unwrap();
        every_remains(&old, &file.log(), |started, bytes| {
            let file = MemoryFile::new(bytes);
            assert!(check(&file).faults.iter().all(|fault| fault.field.starts_with("Header.")));
            let mut disk = disk(Vhdx::open(&file, &guids(1000)).unwrap(), &file);
            let actual = disk.image.disk_geometry().size_bytes;
            assert!(actual == size || actual == DISK, "after {started} changes: {actual}");
            let shared = actual.min(DISK);
            let retained = disk.read(range(0, shared)).unwrap();
            assert!(retained == expected[..shared as usize], "after {started} changes");
            let added = disk.read(range(shared, actual.min(8 * MB) - shared)).unwrap();
            assert!(is_filled(&added, 0), "after {started} changes");
        });
    }
}

#[test]
fn a_commit_of_many_entries_keeps_every_flush_boundary() {
    // Each write concerns separate pages of the sector bitmap and of the BAT.
    const STEP: u64 = 513 * MB;
    const WRITES: u64 = 70;
    let spec = child(WRITES * STEP);
    let file = created(&spec);
    let mut disk = disk(Vhdx::open(&file, &guids(1)).unwrap(), &file);
    let before = file.content();
    file.clear_log();
    for index in 0..WRITES {
        disk.write(index * STEP, &[index as u8 + 1; 512]).unwrap();
    }
    disk.flush().unwrap();
    let ops = file.log();
    let flushes = ops.iter().filter(|op| **op == LoggedChange::Flush).count();
    assert!(flushes > 4, "{flushes} flushes: several entries");
    let mut numbers = Numbers::new(3);
    for started in flush_boundaries(&ops) {
        let is_durable = started == ops.len();
        for bytes in remains(&before, &ops, started, &mut numbers) {
            let file = MemoryFile::new(bytes);
            let mut parent = read_parent;
            let image = Vhdx::open(&file, &guids(1000)).unwrap();
            let mut disk = TestDisk { image, file: &file, parent: Some(&mut parent) };
            for index in 0..WRITES {
                let bytes = disk.read(range(index * STEP, 1024)).unwrap();
                let (written, parents) = bytes.split_at(512);
                let (new, old) = (index as u8 + 1, parent_byte(index * STEP));
                let is_new = written.iter().all(|byte| *byte == new);
                assert!(
                    is_new || !is_durable && written.iter().all(|byte| *byte == old),
                    "{index}"
                );
                assert!(parents.iter().all(|byte| *byte == parent_byte(index * STEP + 512)));
            }
        }
    }
}

#[test]
fn next_commit_includes_a_failed_one() {
    for steps_done in 0..6 {
        let file = created(&child(DISK));
        let mut image = Vhdx::open(&file, &guids(1)).unwrap();
        let disk = |image, offset: u64| {
            let mut disk = disk(image, &file);
            disk.write(offset, &[9; 4096]).unwrap();
            disk.image
        };
        image = disk(image, MB);
        let commit = image.begin_commit().unwrap();
        for step in commit.steps.into_iter().take(steps_done) {
            match step {
                Step::Write { offset, bytes } => file.write_at(offset, &bytes).unwrap(),
                Step::Extend { len, .. } => file.set_len(len).unwrap(),
                _ => {}
            }
        }
        image.handle_commit(CommitOutcome::Failed { completed_steps: steps_done });
        assert!(image.uncommitted_bytes() > 0);
        image = disk(image, 2 * MB);
        let mut again = support::disk(image, &file);
        again.flush().unwrap();
        assert_eq!(again.image.uncommitted_bytes(), 0);
        let bytes = reopened(file.content(), 1000);
        let mut expected = vec![0; DISK as usize];
        read_parent(range(0, DISK), &mut expected);
        for offset in [MB, 2 * MB] {
            expected[offset as usize..offset as usize + 4096].fill(9);
        }
        assert!(bytes == expected, "{steps_done}");
    }
}

/// Carries out the first `completed` steps of a commit and reports that the next one failed; if
/// there is no next step, reports success. Returns whether the commit failed, and whether one of
/// the completed steps made it durable.
fn fail_after(image: &mut Vhdx, file: &MemoryFile, completed: usize) -> (bool, bool) {
    let Commit { steps } = image.begin_commit().unwrap();
    let count = steps.len();
    let is_durable = steps.iter().take(completed).any(|step| *step == Step::DurableMarker);
    let started = Commit { steps: steps.into_iter().take(completed).collect() };
    started.execute(file).unwrap();
    let is_failed = completed < count;
    let failed = CommitOutcome::Failed { completed_steps: completed };
    image.handle_commit(if is_failed { failed } else { CommitOutcome::Done });
    (is_failed, is_durable)
}

/// The log's last entry protects pages that could not be written to their offsets. The next commit
/// needs several entries, none of which contains all of these pages.
#[test]
fn a_commit_of_many_entries_keeps_what_the_log_protects_since_a_failure() {
    const STEP: u64 = 513 * MB;
    const FLUSHED: u64 = 25;
    const WRITES: u64 = 70;
    let value = |index: u64| [index as u8 + 1; 512];
    let mut numbers = Numbers::new(4);
    for completed in (0..).step_by(9) {
        let file = created(&child(WRITES * STEP));
        let mut disk = disk(Vhdx::open(&file, &guids(1)).unwrap(), &file);
        (0..FLUSHED).for_each(|index| disk.write(index * STEP, &value(index)).unwrap());
        let mut image = disk.image;
        let (is_failed, is_durable) = fail_after(&mut image, &file, completed);
        let mut disk = support::disk(image, &file);
        (FLUSHED..WRITES).for_each(|index| disk.write(index * STEP, &value(index)).unwrap());
        let before = file.content();
        file.clear_log();
        // The second attempt may fail as well, at its first flush for example.
        let fails_again = numbers.below(3);
        fail_after(&mut disk.image, &file, fails_again);
        disk.flush().unwrap();
        let ops = file.log();
        for started in flush_boundaries(&ops) {
            for bytes in remains(&before, &ops, started, &mut numbers) {
                let flushed = if is_durable { FLUSHED } else { 0 };
                let retained = if started == ops.len() { WRITES } else { flushed };
                let file = MemoryFile::new(bytes);
                let mut disk = support::disk(Vhdx::open(&file, &guids(9)).unwrap(), &file);
                for index in 0..retained {
                    let actual = disk.read(range(index * STEP, 512)).unwrap();
                    assert!(
                        actual == value(index),
                        "{completed}, {fails_again}: {index} at {started}"
                    );
                }
            }
        }
        if !is_failed {
            break;
        }
    }
}
