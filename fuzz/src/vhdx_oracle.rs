//! Fuzz oracle of damaged VHDX images.
//!
//! The input selects an image, damages it, and then issues requests as a guest does. Damaged
//! structures may get correct checksums, so that the damage is not rejected by them. If the image
//! can be opened, each located byte is within the file, no two blocks share space, and reads return
//! what was written.

use std::io;

use suimon_image::testing::{MemoryFile, TestDisk};
use suimon_image::{ByteRange, FileError, Image, ImageExtent, ImageFile, Location, Translation};
use suimon_vhdx::{Guid, NewVhdx, ParentLocator, Vhdx, WriteGuids, check as check_image};

const MB: u64 = 1 << 20;
/// Size of the disk in bytes before it is damaged.
const DISK: u64 = 3 * MB + 4096;
/// Maximum length of the image file in bytes; longer writes fail.
const FILE_MAX: u64 = 48 * MB;
/// Number of bytes of the disk that are read and compared.
const WINDOW: u64 = 4 * MB;
/// Maximum length in bytes of one range that is located.
const QUESTION: u64 = 1 << 30;
/// Maximum number of located ranges: 512 GiB of the disk.
const QUESTIONS_MAX: u64 = 512;
const DAMAGES_MAX: usize = 16;
const REQUESTS_MAX: usize = 24;

/// Statistics of an input, with which tests verify that seeds reach the intended states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// True if the image was opened for reading.
    pub was_read: bool,
    /// True if the image was opened for writing.
    pub was_opened: bool,
    /// Executed writes.
    pub writes: usize,
    /// Log entries that were replayed.
    pub replayed: usize,
}

/// File in memory with a maximum length of [`FILE_MAX`].
struct Bounded(MemoryFile);

impl Bounded {
    fn bound(len: Option<u64>) -> Result<(), FileError> {
        match len {
            Some(len) if len <= FILE_MAX => Ok(()),
            _ => Err(io::Error::from(io::ErrorKind::StorageFull).into()),
        }
    }
}

impl ImageFile for Bounded {
    fn len(&self) -> Result<u64, FileError> {
        self.0.len()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        self.0.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        Self::bound(offset.checked_add(bytes.len() as u64))?;
        self.0.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> Result<(), FileError> {
        Self::bound(Some(len))?;
        self.0.set_len(len)
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError> {
        // Zeroing does not extend the file.
        let len = len.min(self.len()?.saturating_sub(offset));
        if len == 0 { Ok(()) } else { self.0.zero(offset, len) }
    }

    fn flush(&self) -> Result<(), FileError> {
        self.0.flush()
    }
}

/// Damages an image, opens it, and checks the results.
///
/// # Panics
///
/// A result violates a rule above.
pub fn check(input: &[u8]) -> Outcome {
    let mut script = input.iter().copied();
    let mut next = || script.next().unwrap_or(0);
    let mut bytes = image(next());
    let damages = usize::from(next()) % (DAMAGES_MAX + 1);
    for _ in 0..damages {
        let damage = [next(), next(), next(), next(), next()];
        damage_image(&mut bytes, damage);
    }
    let mut outcome = Outcome::default();
    let report = check_image(&MemoryFile::new(bytes.clone()));
    let file = MemoryFile::new(bytes.clone());
    let Ok(mut reader) = Vhdx::open_read_only(&file) else {
        return outcome;
    };
    outcome.was_read = true;
    outcome.replayed = report.log_entries;
    let header_fault = |field: &str| field.starts_with("Header") || field.starts_with("RegionT");
    assert!(report.faults.iter().all(|fault| header_fault(fault.field)), "{report:?}");
    assert!(file.log().is_empty(), "opening for reading changed the file");
    judge_places(&mut reader, &file);
    let window = WINDOW.min(reader.disk_geometry().size_bytes);
    let sector = u64::from(reader.disk_geometry().logical_sector_bytes);
    let Some(expected) = read(reader, &file, window) else { return outcome };
    let file = Bounded(MemoryFile::new(bytes));
    let Ok(image) = Vhdx::open(&file, &guids(1)) else { return outcome };
    outcome.was_opened = true;
    let guest = Guest { file: &file, expected, window, sector };
    outcome.writes = guest.run(image, &mut next);
    outcome
}

/// Creates an image with some written and some discarded blocks, properly closed or not.
fn image(options: u8) -> Vec<u8> {
    let file = MemoryFile::default();
    let parent = (options & 1 != 0).then(|| ParentLocator::new(Guid::new(9)));
    let spec = NewVhdx {
        size: DISK,
        block_bytes: if options & 2 == 0 { MB } else { 2 * MB },
        logical_sector_bytes: if options & 4 == 0 { 512 } else { 4096 },
        physical_sector_bytes: 4096,
        is_fixed: options & 8 != 0,
        parent,
        file_write: Guid::new(1),
        data_write: Guid::new(2),
        disk_id: Guid::new(3),
    };
    spec.create(&file).expect("the image can be created");
    let image = Vhdx::open(&file, &guids(0)).expect("the new image can be opened");
    let mut disk = TestDisk { image, file: &file, parent: None };
    let range = |offset, len| ByteRange::new(offset, len).expect("the range is valid");
    disk.write(MB - 4096, &[1; 8192]).expect("the image can be written");
    disk.flush().expect("files in memory do not fail");
    disk.write(2 * MB, &[2; 4096]).expect("the image can be written");
    disk.discard(range(0, 2 * MB)).expect("the image can be written");
    disk.flush().expect("files in memory do not fail");
    if options & 16 == 0 {
        disk.image.close(&file).expect("files in memory do not fail");
    }
    file.bytes()
}

fn guids(index: u128) -> WriteGuids {
    let guid = |kind| Guid::new(index << 8 | kind);
    WriteGuids { file_write: guid(4), data_write: guid(5), log: guid(6) }
}

/// Damages the image: overwrites up to 8 bytes of a structure, or truncates the file. `area`
/// selects the structure, `low` and `high` the offset in it; `mode` selects width and position of
/// the value, and whether the structure's checksum is corrected.
fn damage_image(bytes: &mut Vec<u8>, [area, low, high, value, mode]: [u8; 5]) {
    const KB: usize = 1 << 10;
    let megabyte = MB as usize;
    let (start, len) = match area % 9 {
        0 => (64 * KB, 80),
        1 => (128 * KB, 80),
        2 => (192 * KB, 112),
        3 => (256 * KB, 112),
        4 => (2 * megabyte, 256),
        5 => (2 * megabyte + 64 * KB, 256),
        6 => (3 * megabyte, 64),
        7 => (megabyte + usize::from(area / 9) % 8 * 4 * KB, 4 * KB),
        _ => {
            let len = bytes.len() * usize::from(value) / 256;
            return bytes.truncate(len);
        }
    };
    let offset = start + usize::from(u16::from_le_bytes([low, high])) % len;
    let number = u64::from(value) << (8 * (mode & 7));
    let width = 1 << (mode >> 3 & 3);
    let Some(target) = bytes.get_mut(offset..offset + width) else { return };
    target.copy_from_slice(&number.to_le_bytes()[..width]);
    if mode & 0x80 == 0 {
        make_good(bytes, start, area % 9);
    }
}

/// Writes the correct checksum into a header, region table or log entry at `start`.
fn make_good(bytes: &mut [u8], start: usize, area: u8) {
    let len = match area {
        0 | 1 => 4096,
        2 | 3 => 64 << 10,
        // The length of a log entry is at its offset 8.
        7 => match bytes.get(start + 8..start + 12).map(<[u8; 4]>::try_from) {
            Some(Ok(len)) => u32::from_le_bytes(len) as usize,
            _ => return,
        },
        _ => return,
    };
    let Some(structure) = bytes.get_mut(start..start.saturating_add(len)) else { return };
    let Some(checksum) = structure.get_mut(4..8) else { return };
    checksum.fill(0);
    let checksum = crc(structure).to_le_bytes();
    structure[4..8].copy_from_slice(&checksum);
}

/// Returns the CRC-32C (reflected polynomial 0x82f63b78), computed with a table.
fn crc(bytes: &[u8]) -> u32 {
    let mut table = [0_u32; 256];
    for (byte, entry) in (0_u32..).zip(&mut table) {
        *entry = (0..8).fold(byte, |crc, _| crc >> 1 ^ (0x82f6_3b78 * (crc & 1)));
    }
    !bytes
        .iter()
        .fold(!0, |crc, byte| table[usize::from((crc ^ u32::from(*byte)) as u8)] ^ crc >> 8)
}

/// Checks that the located bytes of the disk are within the file and that no two share a location.
fn judge_places(image: &mut Vhdx, file: &MemoryFile) {
    let size = image.disk_geometry().size_bytes;
    let file_len = file.len().expect("files in memory do not fail").next_multiple_of(MB);
    let block = image.block_bytes();
    let mut ranges = Vec::new();
    let full_range = ByteRange::new(0, size).expect("a disk has at most 64 TB");
    for (_, piece) in full_range.blocks(QUESTION).take(QUESTIONS_MAX as usize) {
        let mut extents: Vec<ImageExtent> = Vec::new();
        if !located(image, file, piece, &mut extents) {
            return;
        }
        assert_eq!(extents.iter().map(|extent| extent.len).sum::<u64>(), piece.len());
        for extent in extents {
            let Location::File(offset) = extent.location else { continue };
            assert!(offset >= MB && offset + extent.len <= file_len + block, "{extent:?}");
            ranges.push((offset, offset + extent.len));
        }
    }
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{pair:?} share space");
    }
}

/// Locates `range`. Returns false if a page of metadata cannot be read.
fn located(
    image: &mut Vhdx,
    file: &MemoryFile,
    range: ByteRange,
    extents: &mut Vec<ImageExtent>,
) -> bool {
    for _ in 0..1 << 16 {
        let located = image.translate_read(range, extents).expect("the range is within the disk");
        let Translation::NeedsMetadata(page) = located else { return true };
        assert!(page.len() <= MB, "{page}");
        let mut bytes = vec![0; page.len() as usize];
        if file.read_at(page.offset(), &mut bytes).is_err() {
            return false;
        }
        image.handle_metadata(page, &bytes).expect("the metadata was requested");
    }
    panic!("metadata is requested without end")
}

fn read(image: Vhdx, file: &dyn ImageFile, window: u64) -> Option<Vec<u8>> {
    let mut parent = |_, bytes: &mut [u8]| bytes.fill(7);
    let mut disk = TestDisk { image, file, parent: Some(&mut parent) };
    disk.read(ByteRange::new(0, window)?).ok()
}

/// Guest with the expected contents of its disk.
struct Guest<'a> {
    file: &'a Bounded,
    expected: Vec<u8>,
    window: u64,
    sector: u64,
}

impl Guest<'_> {
    /// Executes the requests of the script and compares the disk. Returns the number of writes.
    fn run(mut self, mut image: Vhdx, next: &mut impl FnMut() -> u8) -> usize {
        let mut writes = 0;
        for index in 0..REQUESTS_MAX {
            let kind = next();
            if kind == 0 {
                break;
            }
            let sectors = self.window / self.sector;
            let sector = u64::from(u16::from_le_bytes([next(), next()])) % sectors;
            let len = (u64::from(next()) * u64::from(next() % 16 + 1)).min(sectors - sector);
            let (offset, len) = (sector * self.sector, len * self.sector);
            let mut parent = |_, bytes: &mut [u8]| bytes.fill(7);
            let mut disk = TestDisk { image, file: self.file, parent: Some(&mut parent) };
            let result = match kind % 4 {
                0 | 1 => {
                    writes += 1;
                    self.expected[offset as usize..(offset + len) as usize].fill(kind);
                    disk.write(offset, &vec![kind; len as usize])
                }
                2 => disk.discard(ByteRange::new(offset, len).expect("the range is valid")).map(
                    |retained| {
                        let mut position = offset;
                        let end = ByteRange::new(offset + len, 0).expect("the range is valid");
                        for range in retained.into_iter().chain([end]) {
                            self.expected[position as usize..range.offset() as usize].fill(0);
                            position = range.end();
                        }
                    },
                ),
                _ => disk.flush(),
            };
            image = disk.image;
            // The file is full, or ends where a sector bitmap is expected.
            if result.is_err() {
                return writes;
            }
            if kind & 0x80 != 0 {
                let ended = if kind & 0x40 == 0 {
                    image.close(self.file)
                } else {
                    TestDisk { image, file: self.file, parent: None }.flush()
                };
                if ended.is_err() {
                    return writes;
                }
                let guids = guids(2 + index as u128);
                image = Vhdx::open(self.file, &guids).expect("the written image can be opened");
            }
        }
        let actual = read(image, self.file, self.window);
        assert!(
            actual.is_none_or(|actual| actual == self.expected),
            "the disk has different contents"
        );
        writes
    }
}
