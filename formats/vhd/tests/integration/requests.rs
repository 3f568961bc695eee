//! Concurrent requests and commits, failures of both, and a crash at any point.

use std::collections::VecDeque;

use crate::support::history::{History, continue_workload, fates, reopened};
use crate::support::{PARENT_SECTOR, SECTOR, created, open, parent, payload, range};
use proptest::prelude::*;
use suimon_image::testing::{Crash, MemoryFile};
use suimon_image::{
    ByteRange, CommitOutcome, Image, ImageExtent, ImageFile, Location, Step, Translation,
};
use suimon_vhd::{Access, CreateParameters, Vhd};

#[derive(Clone, Debug)]
enum Op {
    /// Translate a write, which is then in flight.
    Place { sector: u64, sectors: u64 },
    /// Complete a write in flight.
    Finish { which: usize },
    /// Fail a write in flight before any of its data is written.
    Fail { which: usize },
    /// Discard sectors, unless a write to them is in flight.
    Discard { sector: u64, sectors: u64 },
    /// Begin a commit unless one is in progress.
    Begin,
    /// Carry out the next steps of the commit, in any order if they may overlap.
    Steps { count: usize, which: usize },
    /// Fail the next step of the commit.
    StepFails,
    /// Begin to zero freed space, unless zeroing is in progress.
    BeginZeroing,
    /// End zeroing, with this outcome.
    EndZeroing { is_zero: bool },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0_u64..100, 1_u64..14).prop_map(|(sector, sectors)| Op::Place { sector, sectors }),
        5 => (0_usize..8).prop_map(|which| Op::Finish { which }),
        1 => (0_usize..8).prop_map(|which| Op::Fail { which }),
        3 => (0_u64..100, 1_u64..60).prop_map(|(sector, sectors)| Op::Discard { sector, sectors }),
        3 => Just(Op::Begin),
        4 => (1_usize..6, 0_usize..9).prop_map(|(count, which)| Op::Steps { count, which }),
        1 => Just(Op::StepFails),
        3 => Just(Op::BeginZeroing),
        3 => (0_u8..4).prop_map(|die| Op::EndZeroing { is_zero: die > 0 }),
    ]
}

struct Engine<'a> {
    image: Vhd,
    file: &'a MemoryFile,
    /// Writes in flight: number to be written, sectors and extents.
    writes: Vec<(u64, ByteRange, Vec<ImageExtent>)>,
    /// Remaining steps of the commit in progress, and the number of changes that it makes durable.
    commit: Option<(VecDeque<Step>, usize)>,
    /// Freed space that is being zeroed.
    zeroing: Option<ByteRange>,
    history: History,
}

impl Engine<'_> {
    fn carry_out(&mut self, number: u64, op: &Op) {
        let size = self.image.disk_geometry().size_bytes / SECTOR;
        let bounded =
            |sector: u64, sectors: u64| range(sector % size, sectors.min(size - sector % size));
        match *op {
            Op::Place { sector, sectors } => self.place(number, bounded(sector, sectors)),
            Op::Finish { which } if !self.writes.is_empty() => {
                let write = self.writes.remove(which % self.writes.len());
                self.finish(&write);
            }
            Op::Fail { which } if !self.writes.is_empty() => {
                let (_, range, _) = self.writes.remove(which % self.writes.len());
                self.image.handle_write_failed(range);
            }
            Op::Discard { sector, sectors } => {
                let range = bounded(sector, sectors);
                if !self.writes.iter().any(|(_, other, _)| range.overlaps(*other)) {
                    self.discard(range);
                }
            }
            Op::Begin if self.commit.is_none() => self.begin(),
            Op::Steps { count, which } => (0..count).for_each(|_| self.step(which)),
            Op::StepFails if self.commit.is_some() => {
                self.commit = None;
                self.image.handle_commit(CommitOutcome::Failed { completed_steps: 0 });
            }
            Op::BeginZeroing if self.zeroing.is_none() => self.zeroing = self.image.poll_zeroing(),
            Op::EndZeroing { is_zero } => {
                let Some(range) = self.zeroing.take() else { return };
                self.file.zero(range.offset(), range.len()).unwrap();
                self.image.handle_zeroed(is_zero);
            }
            _ => {}
        }
    }

    fn place(&mut self, number: u64, range: ByteRange) {
        if self.writes.iter().any(|(_, other, _)| range.overlaps(*other)) {
            return;
        }
        let mut extents = Vec::new();
        for _ in 0..1000 {
            match self.image.translate_write(range, &mut extents).unwrap() {
                Translation::Ready => return self.writes.push((number, range, extents)),
                Translation::NeedsMetadata(metadata) => {
                    assert!(extents.is_empty());
                    let mut bytes = vec![0; metadata.len() as usize];
                    self.file.read_at(metadata.offset(), &mut bytes).unwrap();
                    self.image.handle_metadata(metadata, &bytes).unwrap();
                }
                Translation::NeedsCommit => {
                    assert!(extents.is_empty());
                    while self.commit.is_some() {
                        self.step(0);
                    }
                    self.begin();
                    while self.commit.is_some() {
                        self.step(0);
                    }
                }
            }
        }
        panic!("{range} never gets a place");
    }

    fn finish(&mut self, (number, range, extents): &(u64, ByteRange, Vec<ImageExtent>)) {
        let log_len = self.file.log().len();
        let (first, count) = (range.offset() / SECTOR, range.len() / SECTOR);
        let written =
            (first..first + count).map(|position| (log_len, position, number << 24 | position));
        self.history.changes.extend(written);
        let bytes = payload(*number, first, count);
        let mut remaining = bytes.as_slice();
        for ImageExtent { location, len } in extents {
            let Location::File(offset) = location else { panic!("{location:?}") };
            let (piece, next) = remaining.split_at(*len as usize);
            assert!(offset + len + 512 <= self.file.len().unwrap(), "a guest writes the footer");
            self.file.write_at(*offset, piece).unwrap();
            remaining = next;
        }
        self.image.handle_written(*range);
    }

    fn discard(&mut self, range: ByteRange) {
        let log_len = self.file.log().len();
        let mut retained = Vec::new();
        assert_eq!(self.image.discard(range, &mut retained).unwrap(), Translation::Ready);
        let is_kept = |position: &u64| {
            retained.iter().any(|kept| (kept.offset()..kept.end()).contains(&(position * SECTOR)))
        };
        let sectors = range.offset() / SECTOR..range.end() / SECTOR;
        self.history.changes.extend(
            sectors.filter(|position| !is_kept(position)).map(|position| (log_len, position, 0)),
        );
    }

    fn begin(&mut self) {
        let changes = self.history.changes.len();
        if let Some(commit) = self.image.begin_commit() {
            self.commit = Some((commit.steps.into(), changes));
        } else {
            self.file.flush().unwrap();
            self.history.durable.push((self.file.log().len(), changes));
        }
    }

    fn step(&mut self, choice: usize) {
        let Some((steps, changes)) = &mut self.commit else { return };
        let first = steps.front();
        let overlapping = steps
            .iter()
            .take_while(|step| first.is_some_and(|first| first.may_run_concurrently(step)));
        let choice = choice % overlapping.count().max(1);
        match steps.remove(choice) {
            Some(Step::Write { offset, bytes }) => self.file.write_at(offset, &bytes).unwrap(),
            Some(Step::Extend { len, .. }) => self.file.set_len(len).unwrap(),
            Some(Step::Zero(range)) => self.file.zero(range.offset(), range.len()).unwrap(),
            Some(Step::Flush) => self.file.flush().unwrap(),
            Some(Step::DurableMarker) => {
                self.history.durable.push((self.file.log().len(), *changes));
            }
            None => {
                self.commit = None;
                self.image.handle_commit(CommitOutcome::Done);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn concurrent_requests_are_durable_after_commit(
        is_differencing in any::<bool>(),
        block_shift in 0_u32..4,
        sectors in 1_u64..90,
        ops in proptest::collection::vec(op(), 1..50),
        mut rng in any::<u64>().prop_perturb(|_, rng| rng),
    ) {
        let block_size = 512 << block_shift;
        let disk = if is_differencing {
            CreateParameters::Differencing { block_size, parent: parent() }
        } else {
            CreateParameters::Dynamic { block_size }
        };
        let initial: Vec<u64> =
            (0..sectors).map(|sector| if is_differencing { PARENT_SECTOR | sector } else { 0 }).collect();
        let file = created(disk, sectors * SECTOR);
        file.clear_log();
        let before = file.content();
        let image = open(&file, Access::Write).unwrap();
        let history = History::default();
        let (writes, commit, zeroing) = (vec![], None, None);
        let mut engine = Engine { image, file: &file, writes, commit, zeroing, history };
        for (number, op) in (1..).zip(&ops) {
            engine.carry_out(number, op);
        }
        let file_log = file.log();
        for started in (0..=file_log.len()).step_by(3).chain([file_log.len()]) {
            let crash = Crash { before: &before, changes: &file_log, started_count: started };
            let allowed = engine.history.allowed(started, &initial);
            for (order, fates) in fates(crash.unflushed_count(), &mut rng).into_iter().take(6) {
                let (file, contents) = reopened(crash.content_after(&order, &fates), &allowed)?;
                continue_workload(&file, contents, &mut rng)?;
            }
        }
    }
}
