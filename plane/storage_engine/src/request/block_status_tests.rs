//! Allocation of a disk, compared with the state of each of its sectors.

use std::sync::Arc;

use suimon_image::testing::MemoryFile;
use suimon_image::{
    ByteRange, Commit, CommitOutcome, DiskGeometry, Image, ImageError, ImageExtent, LinearImage,
    Location, Translation, push_extent,
};
use suimon_ports::{Allocation, FileSlot};

use crate::disk::layer::Layer;
use crate::disk::{BlockingOperation, DiskState};
use crate::request::block_status::{EXTENTS_MAX, FoundExtents, query_file, query_images};
use crate::testing::fake_file::FakeFile;
use crate::testing::random_numbers::RandomNumbers;

const SECTOR: u64 = 512;

/// Image with an allocation state per sector. Only a part of its metadata is in memory.
struct Sectors {
    places: Vec<Location>,
    /// First sector for which metadata must be read from the file.
    known: usize,
}

impl Image for Sectors {
    fn disk_geometry(&self) -> DiskGeometry {
        let size = self.places.len() as u64 * SECTOR;
        DiskGeometry {
            size_bytes: size,
            logical_sector_bytes: 512,
            physical_sector_bytes: 512,
            block_bytes: SECTOR,
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
    fn handle_write_failed(&mut self, _: ByteRange) {}

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
        Layer { image, disk_file: source, file: FileSlot(0), can_punch: true, is_direct: false }
    };
    DiskState::new(images.into_iter().map(layer).collect(), None)
}

fn range(offset: u64, len: u64) -> ByteRange {
    ByteRange::new(offset, len).unwrap()
}

fn new_found(max: usize) -> FoundExtents {
    FoundExtents { extents: Vec::new(), extents_max: max }
}

/// Returns the reported allocation of each sector.
fn sector_states(found_extents: &FoundExtents) -> Vec<Allocation> {
    let sectors_of = |extent: &suimon_ports::AllocationExtent| {
        vec![extent.allocation; usize::try_from(extent.len / SECTOR).unwrap()]
    };
    found_extents.extents.iter().flat_map(sectors_of).collect()
}

#[test]
fn bytes_of_any_layer_are_data_and_bytes_beyond_a_parent_are_a_hole() {
    for seed in 0..200 {
        let mut random = RandomNumbers(seed);
        let layers: Vec<Vec<Location>> = (0..1 + random.below(3))
            .map(|_| {
                let sectors = 1 + random.below(60);
                let mut draw_location = |_| match random.below(3) {
                    0 => Location::File(4096),
                    1 => Location::Zero,
                    _ => Location::Parent,
                };
                (0..sectors).map(&mut draw_location).collect()
            })
            .collect();
        let count = layers[0].len() as u64;
        let first_sector = random.below(count);
        let len = 1 + random.below(count - first_sector);
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
        let images = layers.iter().map(|layer_locations| {
            Box::new(Sectors { places: layer_locations.clone(), known: usize::MAX })
                as Box<dyn Image>
        });
        let mut disk = disk(images.collect());
        let max = 1 + random.below(12) as usize;
        let mut found_extents = new_found(max);
        let queried = range(first_sector * SECTOR, len * SECTOR);
        assert_eq!(query_images(&mut disk, queried, &mut found_extents).unwrap(), None);
        let expected: Vec<Allocation> = (first_sector..first_sector + len).map(truth).collect();
        let allocations = sector_states(&found_extents);
        assert_eq!(allocations[..], expected[..allocations.len()], "seed {seed}");
        assert!(found_extents.extents.len() <= max);
        let is_whole = allocations.len() == expected.len();
        assert!(is_whole || found_extents.extents.len() == max, "seed {seed}: it stopped early");
        let are_apart =
            found_extents.extents.windows(2).all(|pair| pair[0].allocation != pair[1].allocation);
        assert!(are_apart);
    }
}

#[test]
fn extents_found_before_missing_metadata_are_reported_before_it_is_read() {
    let step = (16 << 20) / SECTOR as usize;
    let image = |known_sectors| {
        Box::new(Sectors { places: vec![Location::Zero; 2 * step], known: known_sectors })
    };
    let full_range = range(0, 2 * step as u64 * SECTOR);
    let mut partial = new_found(EXTENTS_MAX);
    let blocked = query_images(&mut disk(vec![image(step)]), full_range, &mut partial).unwrap();
    assert!(matches!(blocked, Some(BlockingOperation::MetadataRead(0, _))));
    assert_eq!(sector_states(&partial).len(), step);
    let mut empty = new_found(EXTENTS_MAX);
    let blocked = query_images(&mut disk(vec![image(5)]), full_range, &mut empty).unwrap();
    assert!(
        matches!(blocked, Some(BlockingOperation::MetadataRead(0, _))) && empty.extents.is_empty()
    );
}

#[test]
fn a_file_of_unknown_allocation_is_data_and_a_range_beyond_the_disk_is_refused() {
    let shape = DiskGeometry {
        size_bytes: 4096,
        logical_sector_bytes: 512,
        physical_sector_bytes: 512,
        block_bytes: 0,
    };
    let mut disk = disk(vec![Box::new(LinearImage::new(shape, 0, false))]);
    let mut partial = new_found(EXTENTS_MAX);
    query_file(&mut disk, range(512, 1024), &mut partial).unwrap();
    assert_eq!(sector_states(&partial), [Allocation::Data; 2]);
    assert!(query_file(&mut disk, range(0, 8192), &mut new_found(1)).is_err());
}
