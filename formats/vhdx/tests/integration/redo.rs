//! A process is killed at any point: what it had answered is there once its changes of metadata are
//! redone by who opens the image next, however often that one is killed meanwhile.

use proptest::prelude::*;
use suimon_image::testing::{Crash, MemoryFile, ParentRead, TestDisk};
use suimon_image::{Image, MetadataChange, Redo};
use suimon_vhdx::{NewImage, Vhdx};

use crate::support::*;

const DISK: u64 = 4 * MB + 4096;
const UNIT: u64 = 4096;

/// What a client does, in units of the disk.
#[derive(Clone, Debug)]
enum Request {
    Write { at: u64, units: u64 },
    Discard { at: u64, units: u64 },
    Flush,
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let units = DISK / UNIT;
    let place = (0..units, prop_oneof![1..8_u64, 200..600_u64, Just(units)]);
    let request = prop_oneof![
        6 => place.clone().prop_map(|(at, units)| Request::Write { at, units }),
        2 => place.prop_map(|(at, units)| Request::Discard { at, units }),
        1 => Just(Request::Flush),
    ];
    prop::collection::vec(request, 1..20)
}

/// A process that has an image open and keeps what is to be redone.
struct Process<'a> {
    disk: TestDisk<'a, Vhdx>,
    file: &'a MemoryFile,
    kept: Vec<MetadataChange>,
    /// What the disk must read as.
    expected: Vec<u8>,
}

impl<'a> Process<'a> {
    fn open(file: &'a MemoryFile, parent: &'a mut ParentRead<'a>, has_parent: bool) -> Self {
        let mut expected = vec![0; DISK as usize];
        if has_parent {
            read_parent(range(0, DISK), &mut expected);
        }
        let mut image = Vhdx::open(file, &guids(1)).unwrap();
        image.remember_changes();
        let disk = TestDisk { image, file, parent: Some(parent) };
        Self { disk, file, kept: Vec::new(), expected }
    }

    fn run(&mut self, nth: usize, request: &Request) {
        let clip = |at: u64, units: u64| (at * UNIT, (units * UNIT).min(DISK - at * UNIT));
        match *request {
            Request::Write { at, units } => {
                let (offset, len) = clip(at, units);
                let byte = (nth % 250) as u8 + 1;
                self.disk.write(offset, &vec![byte; len as usize]).unwrap();
                self.expected[offset as usize..(offset + len) as usize].fill(byte);
            }
            Request::Discard { at, units } => {
                let (offset, len) = clip(at, units);
                let mut kept = Vec::new();
                self.disk.image.discard(range(offset, len), &mut kept).unwrap();
                let mut at = offset;
                for kept in kept.into_iter().chain([range(offset + len, 0)]) {
                    self.expected[at as usize..kept.offset() as usize].fill(0);
                    at = kept.end();
                }
            }
            Request::Flush => self.flush(),
        }
        self.disk.image.take_changes(&mut self.kept);
    }

    /// Commits. Whatever of that is done, what is kept until it is over can be redone.
    fn flush(&mut self) {
        let (before, redo) = (self.file.bytes(), self.redo());
        self.file.forget();
        self.disk.flush().unwrap();
        let ops = self.file.ops();
        for begun in 0..=ops.len() {
            let bytes = Crash { before: &before, ops: &ops, begun }.file(&[], &[]);
            check(&bytes, &redo, &self.expected);
        }
        self.kept.clear();
    }

    fn redo(&self) -> Redo {
        let redone_as = guids(2).file_write.stored();
        Redo { opened: self.disk.image.opened(), changes: self.kept.clone(), redone_as }
    }
}

/// Opens an image of which a process was killed. All that is done to it meanwhile is cut off at
/// every point, and begun again.
fn check(bytes: &[u8], redo: &Redo, expected: &[u8]) {
    let file = MemoryFile::new(bytes.to_vec());
    let image = Vhdx::open_and_redo(&file, &guids(2), redo).unwrap();
    assert!(content(image, &file) == expected, "an answered write is lost");
    let ops = file.ops();
    for begun in 0..=ops.len() {
        let bytes = Crash { before: bytes, ops: &ops, begun }.file(&[], &[]);
        let file = MemoryFile::new(bytes);
        let image = Vhdx::open_and_redo(&file, &guids(2), redo).unwrap();
        assert!(content(image, &file) == expected, "lost by a kill after {begun} changes");
    }
}

fn survives(spec: &NewImage, requests: &[Request]) {
    let file = created(spec);
    let mut parent = read_parent;
    let mut process = Process::open(&file, &mut parent, spec.parent.is_some());
    for (nth, request) in requests.iter().enumerate() {
        process.run(nth, request);
        if nth + 1 == requests.len() || nth % 5 == 0 {
            check(&file.bytes(), &process.redo(), &process.expected);
        }
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_a_killed_process_had_answered_is_redone(requests in requests()) {
        survives(&dynamic(DISK), &requests);
    }

    #[test]
    fn what_a_killed_process_had_answered_is_redone_in_a_child(requests in requests()) {
        survives(&child(DISK), &requests);
    }
}

#[test]
fn an_image_that_another_program_has_opened_meanwhile_is_left_as_it_is() {
    let file = created(&dynamic(DISK));
    let mut parent = read_parent;
    let mut process = Process::open(&file, &mut parent, false);
    process.run(1, &Request::Write { at: 3, units: 2 });
    let redo = process.redo();
    drop(process);
    let other = MemoryFile::new(file.bytes());
    Vhdx::open(&other, &guids(9)).unwrap().close(&other).unwrap();
    let before = other.bytes();
    let error = Vhdx::open_and_redo(&other, &guids(2), &redo).unwrap_err();
    assert_eq!(error.field, "Header.FileWriteGuid");
    assert!(error.to_string().contains("another program"), "{error}");
    assert!(other.bytes() == before);
}
