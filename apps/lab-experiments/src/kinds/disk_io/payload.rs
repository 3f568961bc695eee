//! Location of a disk's payload in its file, so that a native load can access the same blocks: the
//! latency of a device depends on the location.
//!
//! All disks here contain zeros only, and native loads write zeros only. Non-zero sectors in a file
//! are metadata of its format and are restored after such a load.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::fs::{Advice, fadvise};

const SECTOR: usize = 512;
const CHUNK: usize = 1 << 20;
/// Smallest number of consecutive zero sectors that marks the start of the payload. Empty logs and
/// tables are shorter; blocks of payload are not.
const RUN_SECTORS: u64 = (2 << 20) / SECTOR as u64;
/// Alignment of the range accessed by a load, in bytes.
const UNIT: u64 = 4096;
/// Largest number of metadata sectors within the payload. A file with more has an unknown format.
const METADATA_SECTORS_MAX: usize = 1 << 16;

/// Offset of a sector in its file in bytes, and its content.
type Sector = (u64, [u8; SECTOR]);

/// Range of a file or device that contains a disk's payload.
#[derive(Debug)]
pub(super) struct Payload {
    path: PathBuf,
    offset: u64,
    len: u64,
    /// Metadata sectors within the range.
    metadata_sectors: Vec<Sector>,
}

impl Payload {
    /// Returns the range of the first `len` bytes of a file or device without metadata.
    pub(super) fn first_bytes(path: &Path, len: u64) -> Self {
        Self { path: path.to_owned(), offset: 0, len, metadata_sectors: Vec::new() }
    }

    /// Finds the payload in the image file of a disk of `disk_bytes`, all of which must have been
    /// written as zeros.
    pub(super) fn find(path: &Path, disk_bytes: u64) -> Result<Self> {
        let of_file = || format!("contents of disk {}", path.display());
        let file = File::open(path).with_context(of_file)?;
        let (used, end) = used_sectors(&file).with_context(of_file)?;
        // Later reads bypass the page cache, which must not contain the file.
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
        let (offset, len) = region(&used, end, disk_bytes).with_context(of_file)?;
        let is_within =
            |(sector_offset, _): &Sector| (offset..offset + len).contains(sector_offset);
        let metadata_sectors = used.into_iter().filter(is_within).collect();
        Ok(Self { path: path.to_owned(), offset, len, metadata_sectors })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the range as options of fio.
    pub(super) fn fio_options(&self) -> String {
        format!("--offset={} --size={}", self.offset, self.len)
    }

    /// Restores metadata sectors after a native load, so that the disk is unchanged.
    pub(super) fn restore_metadata(&self) -> Result<()> {
        if self.metadata_sectors.is_empty() {
            return Ok(());
        }
        let file = OpenOptions::new().write(true).open(&self.path);
        let file = file.with_context(|| self.path.display().to_string())?;
        for (offset, sector) in &self.metadata_sectors {
            file.write_all_at(sector, *offset)?;
        }
        file.sync_data()?;
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
        Ok(())
    }
}

/// Returns all sectors that are not all zero, and the size of the file in bytes.
fn used_sectors(file: &File) -> Result<(Vec<Sector>, u64)> {
    let (mut used, mut end) = (Vec::new(), 0);
    let mut chunk = Vec::with_capacity(CHUNK);
    loop {
        chunk.clear();
        file.take(CHUNK as u64).read_to_end(&mut chunk)?;
        if chunk.is_empty() {
            return Ok((used, end));
        }
        for (offset, bytes) in (end..).step_by(SECTOR).zip(chunk.chunks(SECTOR)) {
            if bytes.iter().any(|byte| *byte != 0) {
                let mut sector = [0; SECTOR];
                sector[..bytes.len()].copy_from_slice(bytes);
                used.push((offset, sector));
                ensure!(used.len() <= METADATA_SECTORS_MAX, "the image has data other than zeros");
            }
        }
        end += chunk.len() as u64;
    }
}

/// Returns the start and length in bytes of the range that begins at the first long run of zeros
/// and contains the disk's payload.
fn region(used: &[Sector], end: u64, disk_bytes: u64) -> Result<(u64, u64)> {
    let sector = SECTOR as u64;
    let ends = used.iter().map(|(offset, _)| *offset).chain([end / sector * sector]);
    let run_starts = std::iter::once(0).chain(used.iter().map(|(offset, _)| offset + sector));
    let runs = run_starts.zip(ends).filter(|(begin, end)| *end >= begin + RUN_SECTORS * sector);
    let runs: Vec<_> = runs.collect();
    let (first, last) =
        runs.first().zip(runs.last()).context("the image has no blocks of zeros")?;
    let begin = first.0.next_multiple_of(UNIT);
    let len = disk_bytes.min((last.1 - begin) / UNIT * UNIT);
    ensure!(
        len >= disk_bytes / 4 * 3,
        "the image has {len} bytes for a disk of {disk_bytes} bytes: not all blocks were written"
    );
    Ok((begin, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Creates a file with a header, an empty log of 1 MiB, and blocks of 2 MiB, each preceded by a
    /// metadata sector.
    fn file(blocks: u64) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().write_all_at(b"header", 0).unwrap();
        file.as_file().write_all_at(b"table", MIB + 512).unwrap();
        for block in 0..blocks {
            let offset = MIB + 1024 + block * (2 * MIB + 512);
            file.as_file().write_all_at(&[0xff; 512], offset).unwrap();
        }
        file.as_file().set_len(MIB + 1024 + blocks * (2 * MIB + 512)).unwrap();
        file.as_file().write_all_at(b"footer", MIB + 1024 + blocks * (2 * MIB + 512)).unwrap();
        file
    }

    #[test]
    fn metadata_that_a_load_overwrites_is_restored() {
        let file = file(8);
        let before = std::fs::read(file.path()).unwrap();
        let payload = Payload::find(file.path(), 16 * MIB).unwrap();
        assert_eq!(payload.offset, (MIB + 1536).next_multiple_of(UNIT));
        assert_eq!((payload.len, payload.metadata_sectors.len()), (16 * MIB, 7));
        let zeros = vec![0; usize::try_from(payload.len).unwrap()];
        file.as_file().write_all_at(&zeros, payload.offset).unwrap();
        assert_ne!(std::fs::read(file.path()).unwrap(), before);
        payload.restore_metadata().unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), before);
    }

    #[test]
    fn a_file_without_metadata_consists_of_payload() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(16 * MIB).unwrap();
        let payload = Payload::find(file.path(), 16 * MIB).unwrap();
        assert_eq!(
            (payload.fio_options().as_str(), payload.metadata_sectors.len()),
            ("--offset=0 --size=16777216", 0)
        );
    }

    #[test]
    fn a_disk_that_is_not_written_and_one_with_nonzero_data_are_rejected() {
        let sparse = file(2);
        let error = Payload::find(sparse.path(), 16 * MIB).unwrap_err();
        assert!(format!("{error:#}").contains("not all blocks were written"), "{error:#}");
        let full = tempfile::NamedTempFile::new().unwrap();
        full.as_file().write_all_at(&vec![1; 40 << 20], 0).unwrap();
        let error = Payload::find(full.path(), 16 * MIB).unwrap_err();
        assert!(format!("{error:#}").contains("data other than zeros"), "{error:#}");
    }
}
