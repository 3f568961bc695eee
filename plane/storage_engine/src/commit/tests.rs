//! Steps of commits in flight.

use suimon_image::testing::MemoryFile;
use suimon_image::{
    ByteRange, Commit, CommitOutcome, DiskGeometry, Image, ImageError, ImageExtent, Location, Step,
    Translation, push_extent,
};
use suimon_ports::{DiskOp, DiskOutcome};

use crate::testing::fake_queue::FakeQueue;
use crate::testing::image_kinds::VHDX;
use crate::testing::requests::{SIZE, WRITE, range};
use crate::tests::disk_bench::{Bench, TAGS};

/// Metadata pages of each commit.
const PAGES: u64 = 256;

/// Image with many changed metadata pages in each commit.
struct ManyPages {
    is_changed: bool,
}

impl Image for ManyPages {
    fn disk_geometry(&self) -> DiskGeometry {
        DiskGeometry {
            size_bytes: SIZE,
            logical_sector_bytes: 512,
            physical_sector_bytes: 4096,
            block_bytes: 1 << 20,
        }
    }
    fn linear_offset(&self) -> Option<u64> {
        None
    }
    fn translate_read(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        push_extent(extents, Location::File(range.offset()), range.len());
        Ok(Translation::Ready)
    }
    fn translate_write(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        self.translate_read(range, extents)
    }
    fn handle_write_failed(&mut self, _: ByteRange) {}
    fn handle_written(&mut self, _: ByteRange) {
        self.is_changed = true;
    }
    fn discard(&mut self, _: ByteRange, _: &mut Vec<ByteRange>) -> Result<Translation, ImageError> {
        unreachable!("no request discards")
    }
    fn handle_metadata(&mut self, _: ByteRange, _: &[u8]) -> Result<(), ImageError> {
        Ok(())
    }
    fn uncommitted_bytes(&self) -> u64 {
        u64::from(self.is_changed) * PAGES * 4096
    }
    fn begin_commit(&mut self) -> Option<Commit> {
        if !std::mem::take(&mut self.is_changed) {
            return None;
        }
        let page =
            |page_number| Step::Write { offset: SIZE + page_number * 4096, bytes: vec![9; 4096] };
        let mut steps = vec![Step::Flush];
        steps.extend((0..PAGES).map(page));
        steps.extend([Step::Flush, Step::DurableMarker]);
        Some(Commit { steps })
    }
    fn handle_commit(&mut self, _: CommitOutcome) {}
    fn has_redo_record(&self, _: ByteRange) -> bool {
        true
    }
}

/// Each iteration of the engine ends all operations in flight. The number of iterations is
/// therefore the number of round trips to the device.
#[test]
fn writes_of_a_commit_are_in_flight_together() {
    for (capacity, turns_max) in [(64, 12), (4, 4 + 256 / 3)] {
        let memory = MemoryFile::new(vec![0; SIZE as usize]);
        let image = Box::new(ManyPages { is_changed: false });
        let queue = FakeQueue::new(TAGS);
        let mut bench = Bench::with_image(VHDX, image, memory, 1, capacity, queue);
        bench.faults.lock().unwrap().completes_at_once = true;
        assert_eq!(bench.run(WRITE, range(0, 4096), vec![1; 4096]), DiskOutcome::Done);
        let before = bench.faults.lock().unwrap().submitted;
        bench.submit(0, DiskOp::Flush, range(0, 0), Vec::new());
        let mut turns = 0;
        while bench.poll().is_empty() {
            turns += 1;
            assert!(turns < 1000);
        }
        let submitted = bench.faults.lock().unwrap().submitted - before;
        assert_eq!(submitted as u64, PAGES + 2);
        assert!(turns <= turns_max, "{turns} iterations with a capacity of {capacity} operations");
    }
}
