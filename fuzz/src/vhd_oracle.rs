//! Fuzz oracle of VHD images.
//!
//! The input is a script and a file. If the file can be opened, each located sector is within the
//! file, no two sectors of the disk share a location, and reads return what the script wrote and
//! discarded, before and after the image is opened again. The oracle checks footers, checksums and
//! locations independently of the code under test.

use std::collections::BTreeMap;

use suimon_image::testing::{MemoryFile, TestDisk};
use suimon_image::{ByteRange, Image, ImageExtent, Location, Translation};
use suimon_vhd::{Access, DiskType, OpenOptions, SizeSource, Vhd, check as check_image};

const SECTOR: u64 = 512;
/// Number of blocks that are checked, and of sectors checked in each.
const BLOCKS_MAX: u64 = 64;
const SECTORS_MAX: u64 = 40;
/// Maximum block size in bytes of images that are written. Larger blocks are only read, because a
/// file in memory is not sparse.
const WRITTEN_BLOCK_MAX: u64 = 64 << 10;
/// Maximum number of steps executed of a script.
const STEPS_MAX: usize = 64;
/// Expected contents by sector number: initial contents, or what was written.
type Model = BTreeMap<u64, Vec<u8>>;

/// Statistics of an input, with which tests verify that seeds reach the intended states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Disk type of the image; `None` if it could not be opened.
    pub opened: Option<DiskType>,
    /// Checked sectors that are allocated in the file.
    pub in_file: u64,
    /// Executed writes.
    pub writes: u64,
    /// Sectors that a discard zeroed.
    pub discarded: u64,
}

/// Opens, checks, reads and writes an image, and checks each result.
///
/// # Panics
///
/// A result violates a rule above.
pub fn check(input: &[u8]) -> Outcome {
    let mut outcome = Outcome::default();
    let Some((&[options, steps], rest)) = input.split_first_chunk() else { return outcome };
    let (script, image) = rest.split_at(usize::from(steps).min(rest.len()));
    let mut image = image.to_vec();
    if options & 1 == 1 {
        repair_checksums(&mut image);
    }
    let size = match options >> 1 & 3 {
        0 => SizeSource::Creator,
        1 => SizeSource::CurrentSize,
        _ => SizeSource::Geometry,
    };
    let file = MemoryFile::new(image);
    let report = check_image(&file, size);
    let open = |access| Vhd::open(&file, OpenOptions { access, size });
    let vhd = match open(Access::Read) {
        Ok(vhd) => vhd,
        Err(error) => {
            assert!(report.is_damaged(), "{error}, but the check reports no damage");
            return outcome;
        }
    };
    let of_table = |field| field != "sector bitmap";
    let damage = report.findings.iter().filter(|finding| of_table(finding.error.field));
    assert!(
        damage.clone().all(|finding| finding.severity != suimon_vhd::FindingSeverity::Damage),
        "{report:?}"
    );
    outcome.opened = Some(vhd.footer().disk_type);
    let sectors = sectors(&vhd);
    let mut disk = TestDisk { image: vhd, file: &file, parent: None };
    outcome.in_file = judge_places(&mut disk, &sectors, file.bytes().len() as u64);
    let mut model: Model =
        sectors.iter().map(|sector| (*sector, disk.read(range(*sector, 1)).unwrap())).collect();
    assert!(file.log().is_empty(), "an image that is only read is changed");
    if disk.image.disk_geometry().block_bytes > WRITTEN_BLOCK_MAX {
        return outcome;
    }
    disk.image = open(Access::Write).expect("a readable image can be opened for writing");
    compare(&mut disk, &model);
    for step in script.chunks_exact(3).take(STEPS_MAX) {
        if step[0] % 8 == 7 {
            disk.flush().unwrap();
            disk.image = open(Access::Write).unwrap();
        } else {
            carry_out(step, &sectors, &mut disk, &mut model, &mut outcome);
        }
        let bytes = file.bytes();
        assert_eq!(bytes[bytes.len() - 512..][..8], *b"conectix", "the file ends with a footer");
    }
    compare(&mut disk, &model);
    disk.flush().unwrap();
    disk.image = open(Access::Read).unwrap();
    judge_places(&mut disk, &sectors, file.bytes().len() as u64 - SECTOR);
    compare(&mut disk, &model);
    outcome
}

/// Writes correct checksums into the footers at both ends, and into the dynamic header that each
/// refers to.
fn repair_checksums(image: &mut [u8]) {
    let fix = |bytes: &mut [u8], offset: usize| {
        bytes[offset..offset + 4].fill(0);
        let sum: u32 = bytes.iter().map(|byte| u32::from(*byte)).sum();
        bytes[offset..offset + 4].copy_from_slice(&(!sum).to_be_bytes());
    };
    let len = image.len();
    for footer in [0, len.saturating_sub(512)] {
        let Some(bytes) = image.get_mut(footer..footer + 512) else { continue };
        fix(bytes, 64);
        let offset = u64::from_be_bytes(bytes[16..24].try_into().unwrap());
        let end = offset.checked_add(1024).filter(|end| *end <= len as u64);
        if let Some(end) = end {
            fix(&mut image[offset as usize..end as usize], 36);
        }
    }
}

fn range(sector: u64, sectors: u64) -> ByteRange {
    ByteRange::new(sector * SECTOR, sectors * SECTOR).unwrap()
}

/// Returns the sectors to check: the first ones of the first blocks, and the last of the disk.
fn sectors(vhd: &Vhd) -> Vec<u64> {
    let geometry = vhd.disk_geometry();
    assert!(
        geometry.size_bytes > 0
            && geometry.size_bytes % SECTOR == 0
            && geometry.size_bytes <= 2040 << 30
    );
    let total = geometry.size_bytes / SECTOR;
    let block = if geometry.block_bytes == 0 { total } else { geometry.block_bytes / SECTOR };
    let starts = (0..total.div_ceil(block).min(BLOCKS_MAX)).map(|block_index| block_index * block);
    let mut sectors: Vec<u64> = starts
        .flat_map(|start| start..(start + block.min(SECTORS_MAX)).min(total))
        .chain([total - 1])
        .collect();
    sectors.dedup();
    sectors
}

/// Checks that each sector has a separate location within the first `len` bytes of the file.
/// Returns the number of allocated sectors.
fn judge_places(disk: &mut TestDisk<'_, Vhd>, sectors: &[u64], len: u64) -> u64 {
    let mut offsets = Vec::new();
    for sector in sectors {
        let mut extents: Vec<ImageExtent> = Vec::new();
        while let Translation::NeedsMetadata(need) =
            disk.image.translate_read(range(*sector, 1), &mut extents).unwrap()
        {
            assert!(
                extents.is_empty() && need.end() <= len,
                "invalid request for metadata: {need}"
            );
            let bytes = disk_bytes(disk, need);
            disk.image.handle_metadata(need, &bytes).unwrap();
        }
        let [ImageExtent { location, len: SECTOR }] = extents[..] else { panic!("{extents:?}") };
        if let Location::File(offset) = location {
            assert!(offset % SECTOR == 0 && offset + SECTOR <= len, "{offset} of {len}");
            offsets.push(offset);
        }
    }
    let count = offsets.len() as u64;
    offsets.sort_unstable();
    offsets.dedup();
    assert_eq!(offsets.len() as u64, count, "two sectors share a location");
    count
}

fn disk_bytes(disk: &TestDisk<'_, Vhd>, range: ByteRange) -> Vec<u8> {
    let mut bytes = vec![0; range.len() as usize];
    disk.file.read_at(range.offset(), &mut bytes).unwrap();
    bytes
}

fn compare(disk: &mut TestDisk<'_, Vhd>, model: &Model) {
    for (sector, expected) in model {
        let actual = disk.read(range(*sector, 1)).unwrap();
        assert!(actual == *expected, "sector {sector} is something else");
    }
}

fn carry_out(
    step: &[u8],
    sectors: &[u64],
    disk: &mut TestDisk<'_, Vhd>,
    model: &mut Model,
    outcome: &mut Outcome,
) {
    let first = sectors[usize::from(step[1]) * sectors.len() / 256];
    let total = disk.image.disk_geometry().size_bytes / SECTOR;
    let count = (u64::from(step[2] % 48) + 1).min(total - first);
    match step[0] % 8 {
        0..=3 => {
            disk.write(first * SECTOR, &vec![step[0] | 1; (count * SECTOR) as usize]).unwrap();
            for (_, content) in model.range_mut(first..first + count) {
                content.fill(step[0] | 1);
            }
            outcome.writes += 1;
        }
        4 | 5 => {
            let retained = disk.discard(range(first, count)).unwrap();
            let is_kept = |sector: u64| {
                retained
                    .iter()
                    .any(|range| (range.offset()..range.end()).contains(&(sector * SECTOR)))
            };
            for (sector, content) in model.range_mut(first..first + count) {
                if !is_kept(*sector) {
                    content.fill(0);
                    outcome.discarded += 1;
                }
            }
        }
        _ => disk.flush().unwrap(),
    }
}
