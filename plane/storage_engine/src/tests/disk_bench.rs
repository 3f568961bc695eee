//! Test bench: a disk with a client, on a file with operations that complete in any order, fail, or
//! are interrupted.

use std::sync::{Arc, Mutex};

use suimon_image::testing::MemoryFile;
use suimon_image::{ByteRange, DiskGeometry, Image, LinearImage};
use suimon_image_files::RecordedImage;
use suimon_image_files::{DiskLayer, LayerStack};
use suimon_ports::testing::MemoryRedoRecords;
use suimon_ports::{DiskOp, DiskOutcome, DiskRequest, RedoRecords};
use suimon_quantity::Time;

use crate::testing::fake_file::FakeFile;
use crate::testing::fake_io::{FakeIo, FaultInjection};
use crate::testing::fake_queue::{Client, FakeQueue, Payloads};
use crate::testing::image_kinds::Kind;
use crate::testing::requests::SIZE;
use crate::{StorageEngine, StorageNotice};

/// Size in bytes of the region of one request; some requests span eight regions. Requests in flight
/// do not overlap.
pub(super) const REGION: u64 = SIZE / REGIONS;
pub(super) const REGIONS: u64 = 32;
pub(crate) const SECTOR: usize = 512;
/// One tag per region, and one for the flush.
pub(crate) const TAGS: usize = REGIONS as usize + 1;

/// Test bench: engine with one disk, its file, and the disk's client.
pub(crate) struct Bench {
    pub(crate) engine: StorageEngine,
    pub(crate) file: Arc<FakeFile>,
    pub(crate) disk: usize,
    pub(crate) queue: usize,
    pub(crate) client: Arc<Mutex<Client>>,
    pub(crate) payloads: Payloads,
    pub(crate) faults: Arc<Mutex<FaultInjection>>,
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
        let record = MemoryRedoRecords::default().create("disk", image.identity()).unwrap();
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
        let faults = Arc::clone(&io.faults);
        let mut engine = StorageEngine::new(Box::new(io));
        memory.clear_log();
        let file = FakeFile::new(memory);
        let layer = DiskLayer { image, file: Arc::clone(&file) as _ };
        let parent = kind.parent.map(|byte| {
            let (logical_sector, physical_sector) = (512, 4096);
            let shape = DiskGeometry {
                size_bytes: SIZE,
                logical_sector_bytes: logical_sector,
                physical_sector_bytes: physical_sector,
                block_bytes: 0,
            };
            let file = FakeFile::new(MemoryFile::new(vec![byte; SIZE as usize]));
            DiskLayer { image: Box::new(LinearImage::new(shape, 0, true)), file }
        });
        let layers = [layer].into_iter().chain(parent).collect();
        let disk = engine.add_disk(LayerStack { layers }, None).unwrap();
        let (client, payloads) = (Arc::clone(&queue.client), Arc::clone(&queue.payloads));
        let queue = engine.add_queue(disk, Box::new(queue)).unwrap();
        Self { engine, file, disk, queue, client, payloads, faults, now: Time::ZERO }
    }

    pub(crate) fn submit(&self, tag: u32, op: DiskOp, range: ByteRange, payload: Vec<u8>) {
        self.payloads.lock().unwrap()[tag as usize] = payload;
        self.client.lock().unwrap().requests.push_back(DiskRequest { tag, op, range });
    }

    pub(crate) fn poll(&mut self) -> Vec<(u32, DiskOutcome)> {
        self.now = self.now + core::time::Duration::from_micros(1);
        self.engine.poll(self.now);
        std::mem::take(&mut self.client.lock().unwrap().completions)
    }

    /// Polls until this request completes, and asserts that no other one does.
    pub(crate) fn wait(&mut self, tag: u32) -> DiskOutcome {
        for _ in 0..10_000 {
            if let Some((completed_tag, outcome)) = self.poll().pop() {
                assert_eq!(completed_tag, tag);
                return outcome;
            }
        }
        panic!("request {tag} is not completed")
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
        std::iter::from_fn(|| self.engine.poll_notice()).collect()
    }
}

pub(crate) fn close(bench: &mut Bench) {
    bench.engine.close_disk(bench.disk);
    for _ in 0..10_000 {
        bench.poll();
        if let Some((disk, spec)) = bench.engine.poll_closed_disk() {
            assert_eq!(disk, bench.disk);
            for DiskLayer { image, file } in spec.layers {
                image.close(&*file).unwrap();
            }
            assert_eq!(bench.engine.poll_closed_queue().unwrap().0, bench.queue);
            return;
        }
    }
    panic!("the disk is not returned");
}
