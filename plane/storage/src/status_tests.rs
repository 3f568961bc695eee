//! Allocation of a disk, compared with the state of each of its sectors.

use std::sync::Arc;

use suimon_image::testing::MemoryFile;
use suimon_image::{
    ByteRange, Commit, CommitOutcome, DiskGeometry, Image, ImageError, ImageExtent, Linear,
    Location, Translation, push_extent,
};
use suimon_ports::{Allocation, FileSlot};

use crate::disk::{BlockedBy, DiskState};
use crate::fakes::{Dice, FakeFile};
use crate::layer::Layer;
use crate::status::{EXTENTS_MAX, Found, query_file, query_images};

const SECTOR: u64 = 512;

/// Image with a state per sector. Only a part of its metadata is in memory.
struct Sectors {
    places: Vec<Location>,
    /// First sector for which metadata must be read from the file.
    known: usize,
}

impl Image for Sectors {
    fn disk_geometry(&self) -> DiskGeometry {
        let size = self.places.len() as u64 * SECTOR;
        DiskGeometry { size, logical_sector: 512, physical_sector: 512, block: SECTOR }
    }
    fn linear_offset(&self) -> Option<u64> {
        None
    }
    fn translate_read(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        self.disk_geometry().check(range)?;
        for (sector, _) in range.blocks(SECTOR) {
            if sector as usize >= self.known {
                return Ok(Translation::NeedsMetadata(range));
            }
            push_extent(extents, self.places[sector as usize], SECTOR);
        }
        Ok(Translation::Ready)
    }
    fn translate_write(
        &mut self,
        _: ByteRange,
        _: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        unreachable!("nothing is written")
    }
    fn handle_failed(&mut self, _: ByteRange) {}

    fn handle_written(&mut self, _: ByteRange) {}
    fn discard(&mut self, _: ByteRange, _: &mut Vec<ByteRange>) -> Result<Translation, ImageError> {
        unreachable!("nothing is freed")
    }
    fn handle_metadata(&mut self, _: ByteRange, _: &[u8]) -> Result<(), ImageError> {
        Ok(())
    }
    fn uncommitted_bytes(&self) -> u64 {
        0
    }
    fn begin_commit(&mut self) -> Option<Commit> {
        None
    }
    fn handle_commit(&mut self, _: CommitOutcome) {}
}

fn disk(images: Vec<Box<dyn Image>>) -> DiskState {
    let layer = |image| {
        let source = FakeFile::new(MemoryFile::new(vec![0; 4096])) as Arc<_>;
        Layer { image, source, file: FileSlot(0), can_punch: true, is_direct: false }
    };
    DiskState::new(images.into_iter().map(layer).collect(), None)
}

fn range(offset: u64, len: u64) -> ByteRange {
    ByteRange::new(offset, len).unwrap()
}

fn found(max: usize) -> Found {
    Found { extents: Vec::new(), max }
}

/// Returns the reported state of each sector.
fn told(found: &Found) -> Vec<Allocation> {
    let each = |of: &suimon_ports::AllocationExtent| {
        vec![of.allocation; usize::try_from(of.len / SECTOR).unwrap()]
    };
    found.extents.iter().flat_map(each).collect()
}

#[test]
fn what_any_layer_has_is_data_and_what_is_behind_a_parent_is_none() {
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let layers: Vec<Vec<Location>> = (0..1 + dice.below(3))
            .map(|_| {
                let sectors = 1 + dice.below(60);
                let mut place = |_| match dice.below(3) {
                    0 => Location::File(4096),
                    1 => Location::Zero,
                    _ => Location::Parent,
                };
                (0..sectors).map(&mut place).collect()
            })
            .collect();
        let count = layers[0].len() as u64;
        let from = dice.below(count);
        let len = 1 + dice.below(count - from);
        let truth = |sector: u64| {
            for layer in &layers {
                match layer.get(sector as usize) {
                    Some(Location::Parent) => {}
                    Some(Location::File(_)) => return Allocation::Data,
                    Some(Location::Zero) | None => return Allocation::Hole,
                }
            }
            // A parent is missing.
            Allocation::Data
        };
        let images = layers.iter().map(|places| {
            Box::new(Sectors { places: places.clone(), known: usize::MAX }) as Box<dyn Image>
        });
        let mut disk = disk(images.collect());
        let max = 1 + dice.below(12) as usize;
        let mut found = found(max);
        let wanted = range(from * SECTOR, len * SECTOR);
        assert_eq!(query_images(&mut disk, wanted, &mut found).unwrap(), None);
        let expected: Vec<Allocation> = (from..from + len).map(truth).collect();
        let told = told(&found);
        assert_eq!(told[..], expected[..told.len()], "seed {seed}");
        assert!(found.extents.len() <= max);
        let is_whole = told.len() == expected.len();
        assert!(is_whole || found.extents.len() == max, "seed {seed}: it stopped early");
        let are_apart = found.extents.windows(2).all(|two| two[0].allocation != two[1].allocation);
        assert!(are_apart);
    }
}

#[test]
fn what_was_found_before_metadata_is_missing_is_told_and_only_then_it_is_read() {
    let step = (16 << 20) / SECTOR as usize;
    let image = |known| Box::new(Sectors { places: vec![Location::Zero; 2 * step], known });
    let all = range(0, 2 * step as u64 * SECTOR);
    let mut some = found(EXTENTS_MAX);
    let met = query_images(&mut disk(vec![image(step)]), all, &mut some).unwrap();
    assert!(matches!(met, Some(BlockedBy::Metadata(0, _))));
    assert_eq!(told(&some).len(), step);
    let mut none = found(EXTENTS_MAX);
    let met = query_images(&mut disk(vec![image(5)]), all, &mut none).unwrap();
    assert!(matches!(met, Some(BlockedBy::Metadata(0, _))) && none.extents.is_empty());
}

#[test]
fn a_file_that_tells_nothing_is_data_and_a_range_beyond_the_disk_is_refused() {
    let shape = DiskGeometry { size: 4096, logical_sector: 512, physical_sector: 512, block: 0 };
    let mut disk = disk(vec![Box::new(Linear::new(shape, 0, false))]);
    let mut some = found(EXTENTS_MAX);
    query_file(&mut disk, range(512, 1024), &mut some).unwrap();
    assert_eq!(told(&some), [Allocation::Data; 2]);
    assert!(query_file(&mut disk, range(0, 8192), &mut found(1)).is_err());
}
