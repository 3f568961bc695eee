//! Kills of a process with an open image at any point, for every format. Completed writes are
//! present once the next opener has redone the metadata changes, even if that opener is killed
//! repeatedly. After a host crash in between, the image opens, and each sector has flushed or later
//! contents.

use std::collections::BTreeSet;

use proptest::prelude::*;
use suimon_image::testing::{Crash, FileContent, LoggedChange, MemoryFile, TestDisk};
use suimon_image::{ByteRange, Image, MetadataChange, RedoChanges};

use crate::power::{Numbers, flush_boundaries, remains};

const UNIT: u64 = 4096;
const SECTOR: usize = 512;

/// Request of the client; offsets and lengths in units of the test disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    Write { at: u64, units: u64 },
    Discard { at: u64, units: u64 },
    Flush,
}

pub(crate) fn requests(disk_bytes: u64) -> impl Strategy<Value = Vec<Request>> {
    let units = disk_bytes / UNIT;
    let extent = (0..units, prop_oneof![1..8_u64, units / 8..units / 2, Just(units)]);
    let request = prop_oneof![
        6 => extent.clone().prop_map(|(at, units)| Request::Write { at, units }),
        2 => extent.prop_map(|(at, units)| Request::Discard { at, units }),
        1 => Just(Request::Flush),
    ];
    prop::collection::vec(request, 1..20)
}

/// Functions of an image format that open a test image.
pub(crate) trait Format {
    type Image: Image;

    /// Opens an image for the first time.
    fn open(&self, file: &MemoryFile) -> Self::Image;

    /// Opens an image after a process was killed.
    fn reopen(&self, file: &MemoryFile, redo: &RedoChanges) -> Self::Image;

    /// Fills bytes with the parent's contents.
    fn read_parent(&self, range: ByteRange, bytes: &mut [u8]);

    /// Returns the write identity that [`Format::reopen`] assigns to the file.
    fn redone_as(&self) -> [u8; 16];
}

/// Simulated process with an open image and its redo record.
struct Process<'a, F: Format> {
    format: &'a F,
    image: Option<F::Image>,
    file: &'a MemoryFile,
    recorded: Vec<MetadataChange>,
    /// Contents that the disk must have.
    expected: Vec<u8>,
    /// Contents of the file when its log of operations was last cleared.
    before: FileContent,
    /// Possible contents of each sector: those at the last flush and all later ones.
    since_flush: Vec<BTreeSet<Vec<u8>>>,
}

impl<'a, F: Format> Process<'a, F> {
    fn open(format: &'a F, file: &'a MemoryFile) -> Self {
        let (mut image, expected) = content(format, format.open(file), file);
        image.enable_change_log();
        file.clear_log();
        let since_flush = vec![BTreeSet::new(); expected.len() / SECTOR];
        let (image, recorded, before) = (Some(image), Vec::new(), file.content());
        let mut process = Self { format, image, file, recorded, expected, before, since_flush };
        process.note_content();
        process
    }

    /// Adds the current contents of each sector to the possible ones.
    fn note_content(&mut self) {
        for (contents, sector) in self.since_flush.iter_mut().zip(self.expected.chunks(SECTOR)) {
            if !contents.contains(sector) {
                contents.insert(sector.to_vec());
            }
        }
    }

    /// Executes requests by `act`, and records the resulting metadata changes.
    fn with_disk(&mut self, act: impl FnOnce(&mut TestDisk<'_, F::Image>)) {
        let mut parent = |range: ByteRange, bytes: &mut [u8]| self.format.read_parent(range, bytes);
        let image = self.image.take().unwrap();
        let mut disk = TestDisk { image, file: self.file, parent: Some(&mut parent) };
        act(&mut disk);
        disk.image.take_logged_changes(&mut self.recorded);
        self.image = Some(disk.image);
    }

    fn run(&mut self, number: usize, request: Request) {
        self.change(number, request);
        self.note_content();
    }

    fn change(&mut self, number: usize, request: Request) {
        let size = self.expected.len() as u64;
        let clip = |unit: u64, units: u64| (unit * UNIT, (units * UNIT).min(size - unit * UNIT));
        match request {
            Request::Write { at, units } => {
                let (offset, len) = clip(at, units);
                let byte = (number % 250) as u8 + 1;
                self.with_disk(|disk| disk.write(offset, &vec![byte; len as usize]).unwrap());
                self.expected[offset as usize..(offset + len) as usize].fill(byte);
            }
            Request::Discard { at, units } => {
                let (offset, len) = clip(at, units);
                let mut retained = Vec::new();
                let range = ByteRange::new(offset, len).unwrap();
                self.with_disk(|disk| retained = disk.discard(range).unwrap());
                let mut position = offset;
                for kept in retained.into_iter().chain(ByteRange::new(offset + len, 0)) {
                    self.expected[position as usize..kept.offset() as usize].fill(0);
                    position = kept.end();
                }
            }
            Request::Flush => self.flush(),
        }
    }

    /// Commits. At any point of the commit, the changes recorded before can be redone.
    fn flush(&mut self) {
        let redo = self.redo();
        let written = self.file.log().len();
        self.with_disk(|disk| disk.flush().unwrap());
        let ops = self.file.log();
        for started in written..=ops.len() {
            let bytes = Crash { before: &self.before, changes: &ops, started_count: started }
                .content_after(&[], &[]);
            check(self.format, &bytes, &redo, &self.expected);
        }
        self.recorded.clear();
        self.since_flush.iter_mut().for_each(BTreeSet::clear);
        (self.before, _) = (self.file.content(), self.file.clear_log());
    }

    /// Simulates host crashes while the redo record is applied. The record is not available
    /// afterwards.
    fn check_host_crashes(&self) {
        let redoing = MemoryFile::new(self.file.content());
        self.format.reopen(&redoing, &self.redo());
        let written = self.file.log();
        let ops: Vec<LoggedChange> = written.iter().cloned().chain(redoing.log()).collect();
        let mut numbers = Numbers::new(ops.len() as u64);
        for started in
            flush_boundaries(&ops).into_iter().filter(|started| *started >= written.len())
        {
            for bytes in remains(&self.before, &ops, started, &mut numbers) {
                let file = MemoryFile::new(bytes);
                let image = self.format.reopen(&file, &RedoChanges::default());
                let (_, actual) = content(self.format, image, &file);
                for (index, (sector, contents)) in
                    actual.chunks(SECTOR).zip(&self.since_flush).enumerate()
                {
                    let number = sector[0];
                    assert!(
                        contents.contains(sector),
                        "sector {index} begins with {number} after a crash"
                    );
                }
            }
        }
    }

    fn redo(&self) -> RedoChanges {
        let opened = self.image.as_ref().unwrap().identity();
        RedoChanges {
            identity_at_open: opened,
            changes: self.recorded.clone(),
            new_write_id: self.format.redone_as(),
        }
    }
}

/// Reads the whole disk. Returns the image and the contents.
fn content<F: Format>(format: &F, image: F::Image, file: &MemoryFile) -> (F::Image, Vec<u8>) {
    let full_range = ByteRange::new(0, image.disk_geometry().size_bytes).unwrap();
    let mut parent = |range: ByteRange, bytes: &mut [u8]| format.read_parent(range, bytes);
    let mut disk = TestDisk { image, file, parent: Some(&mut parent) };
    let bytes = disk.read(full_range).unwrap();
    (disk.image, bytes)
}

/// Opens an image after a kill, and checks that the disk has the `expected` contents. The process
/// is killed again after each file operation, and the opening is repeated.
fn check<F: Format>(format: &F, bytes: &FileContent, redo: &RedoChanges, expected: &[u8]) {
    let file = MemoryFile::new(bytes.clone());
    let (_, actual) = content(format, format.reopen(&file, redo), &file);
    assert!(actual == expected, "an answered write is lost");
    let ops = file.log();
    for started in 0..=ops.len() {
        let bytes =
            Crash { before: bytes, changes: &ops, started_count: started }.content_after(&[], &[]);
        let file = MemoryFile::new(bytes);
        let (_, actual) = content(format, format.reopen(&file, redo), &file);
        assert!(actual == expected, "lost by a kill after {started} changes");
    }
}

/// Executes requests on a new image, with kills after requests and at each step of each commit, and
/// host crashes during redo.
pub(crate) fn survives<F: Format>(format: &F, file: &MemoryFile, requests: &[Request]) {
    let mut process = Process::open(format, file);
    for (number, request) in requests.iter().enumerate() {
        process.run(number, *request);
        if number + 1 == requests.len() || number % 5 == 0 {
            check(format, &file.content(), &process.redo(), &process.expected);
            process.check_host_crashes();
        }
    }
}

/// Returns the file after one write to new space, and the changes to redo.
pub(crate) fn after_one_write<F: Format>(format: &F, file: &MemoryFile) -> (Vec<u8>, RedoChanges) {
    let mut process = Process::open(format, file);
    process.run(1, Request::Write { at: 3, units: 2 });
    (file.bytes(), process.redo())
}
