//! Backup of an image's former metadata in a file beside the image.
//!
//! ```text
//! Suimon image backup 2
//! length BEFORE AFTER LARGEST
//! modified SECONDS NANOSECONDS
//! range OFFSET BYTES
//! …
//!
//! for each range: its content before, then after
//! ```
//!
//! Ranges consist of whole sectors, are in ascending order, and do not touch. During the change,
//! the backup has the name given by [`incomplete_change_backup_name`]; [`Backup::finish`] gives it
//! its final name.

use core::fmt::Write as _;
use std::sync::Arc;

use suimon_image::{ByteRange, FileError, ImageError, ImageFile};
use suimon_ports::{DiskFile, FileLockMode, FileName, FileTime, StoreFault};

use super::planned_file::{FileLengths, PlannedFile, SECTOR_BYTES, SECTORS_MAX, chunks};
use super::{ImageTarget, UNIT};
use crate::{DiskError, DiskFault, IncompleteImage, incomplete_change_backup_name};

const TITLE: &str = "Suimon image backup 2";

/// Maximum size of a head in bytes. Suffices for one range per sector that may be written.
const HEAD_MAX: u64 = 16 << 20;

/// Number of bytes of a backup's head that are read at a time.
const HEAD_PIECE: u64 = 64 << 10;

/// Maximum number of backups of one image whose names have the same second.
const NAMES_MAX: u32 = 100;

/// Backup of a change. The contents of the ranges remain in the file.
pub(super) struct Backup {
    pub(super) name: FileName,
    pub(super) header: BackupHeader,
    file: Arc<dyn DiskFile>,
    content_at: u64,
}

/// Receiver of a part of a range: offset in the image, content before and after the change.
type Take<'a> = dyn FnMut(u64, &[u8], &[u8]) -> Result<(), DiskError> + 'a;

/// Head of a backup: description of the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BackupHeader {
    pub(super) lengths: FileLengths,
    pub(super) modified: FileTime,
    pub(super) ranges: Vec<ByteRange>,
}

impl BackupHeader {
    fn encode(&self) -> Vec<u8> {
        let FileLengths { before, after, largest } = self.lengths;
        let mut head = format!(
            "{TITLE}\nlength {before} {after} {largest}\nmodified {} {}\n",
            self.modified.unix_s, self.modified.ns
        );
        for range in &self.ranges {
            // Writing to a string cannot fail.
            let _ = writeln!(head, "range {} {}", range.offset(), range.len());
        }
        head.push('\n');
        head.into_bytes()
    }

    /// Decodes a head; `None` if the bytes are not a valid head.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut lines = core::str::from_utf8(bytes).ok()?.strip_suffix("\n\n")?.lines();
        if lines.next() != Some(TITLE) {
            return None;
        }
        let (lengths, modified) = (lines.next()?, lines.next()?);
        let [before, after, largest] = numbers("length", lengths)?;
        let lengths = FileLengths { before, after, largest };
        let [unix_s, ns] = numbers::<i64, 2>("modified", modified)?;
        let ns = u32::try_from(ns).ok().filter(|ns| *ns < 1_000_000_000)?;
        let (mut ranges, mut end, mut sectors) = (Vec::new(), None, 0_u64);
        for line in lines {
            let [offset, len] = numbers("range", line)?;
            let range = ByteRange::new(offset, len)?;
            sectors = sectors.checked_add(range.len() / SECTOR_BYTES)?;
            let is_behind = end.is_none_or(|end| end < range.offset());
            if range.is_empty()
                || !range.is_aligned(SECTOR_BYTES)
                || !is_behind
                || sectors > SECTORS_MAX
            {
                return None;
            }
            end = Some(range.end());
            ranges.push(range);
        }
        let is_possible = lengths.largest >= lengths.before.max(lengths.after);
        let modified = FileTime { unix_s, ns };
        is_possible.then_some(Self { lengths, modified, ranges })
    }
}

/// Returns the numbers in a line that begins with `keyword`.
fn numbers<T: core::str::FromStr, const N: usize>(keyword: &str, line: &str) -> Option<[T; N]> {
    let mut numbers =
        line.strip_prefix(keyword)?.split_whitespace().map(|number| number.parse().ok());
    let parsed: Vec<T> = numbers.by_ref().take(N + 1).collect::<Option<_>>()?;
    parsed.try_into().ok()
}

impl Backup {
    /// Writes the backup of a planned change under the name for an incomplete change, and makes it
    /// durable. Fails if the store is full.
    pub(super) fn write(
        target: ImageTarget<'_>,
        head: BackupHeader,
        planned: &PlannedFile<'_>,
    ) -> Result<Self, DiskError> {
        let name = unfinished_of(target)?;
        let draft = IncompleteImage::new(target.files, &name, UNIT)?;
        let encoded = head.encode();
        draft.write(&encoded)?;
        let content_at = encoded.len() as u64;
        let mut offset = content_at;
        let mut bytes = Vec::new();
        let of_file = |error| {
            DiskError::new(target.show(target.name), image_error_from_file(error))
                .normalize_store_full()
        };
        for range in &head.ranges {
            for is_after in [false, true] {
                for piece in chunks(*range) {
                    bytes.resize(to_usize(piece.len()), 0);
                    let read = if is_after {
                        planned.read_after(piece.offset(), &mut bytes)
                    } else {
                        planned.read_before(piece.offset(), &mut bytes)
                    };
                    read.map_err(of_file)?;
                    draft.write_at(offset, &bytes)?;
                    offset = offset.saturating_add(piece.len());
                }
            }
        }
        draft.publish()?;
        let file = target.files.open(&name, FileLockMode::Read, UNIT)?;
        Ok(Self { name, header: head, file, content_at })
    }

    /// Opens a backup and decodes its head. Fails with [`DiskFault::BackupMismatch`] if the file is
    /// not a backup.
    pub(super) fn open(target: ImageTarget<'_>, name: &FileName) -> Result<Self, DiskError> {
        let file = target.files.open(name, FileLockMode::Read, UNIT)?;
        let failed = |error| DiskError::new(target.show(name), image_error_from_file(error));
        let head = read_head(file.as_image_file()).map_err(failed)?;
        let decoded = head.and_then(|(bytes, len)| {
            let head = BackupHeader::decode(&bytes)?;
            let content: u64 = head.ranges.iter().map(|range| range.len() * 2).sum();
            let content_at = bytes.len() as u64;
            (content_at.saturating_add(content) == len).then_some((head, content_at))
        });
        let Some((head, content_at)) = decoded else {
            let reason = "the file is not a backup of `suimon image repair` or `relink`, or of \
                       another version of Suimon; name the file that the change reported";
            return Err(backup_error(target, name, reason.to_owned()));
        };
        Ok(Self { name: name.clone(), header: head, file, content_at })
    }

    /// Returns the backup of an incomplete change; `None` if there is none.
    pub(super) fn find_incomplete(target: ImageTarget<'_>) -> Result<Option<Self>, DiskError> {
        let Some(name) = incomplete_change_backup_name(target.name) else { return Ok(None) };
        match Self::open(target, &name) {
            Ok(backup) => Ok(Some(backup)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Calls `handle_piece` for each part of each range, in order, with its content before and
    /// after the change. A part has at most 1 MiB.
    pub(super) fn for_each_chunk(
        &self,
        target: ImageTarget<'_>,
        handle_piece: &mut Take<'_>,
    ) -> Result<(), DiskError> {
        let failed = |error| DiskError::new(target.show(&self.name), image_error_from_file(error));
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut position = self.content_at;
        for range in &self.header.ranges {
            for piece in chunks(*range) {
                let source_offset = position.saturating_add(piece.offset() - range.offset());
                before.resize(to_usize(piece.len()), 0);
                after.resize(to_usize(piece.len()), 0);
                self.file.read_at(source_offset, &mut before).map_err(failed)?;
                self.file
                    .read_at(source_offset.saturating_add(range.len()), &mut after)
                    .map_err(failed)?;
                handle_piece(piece.offset(), &before, &after)?;
            }
            position = position.saturating_add(range.len() * 2);
        }
        Ok(())
    }

    /// Copies the backup to the name for an incomplete change, and makes the copy durable.
    pub(super) fn copy_as_incomplete(&self, target: ImageTarget<'_>) -> Result<(), DiskError> {
        let draft = IncompleteImage::new(target.files, &unfinished_of(target)?, UNIT)?;
        let failed = |error| DiskError::new(target.show(&self.name), image_error_from_file(error));
        let len = self.file.len().map_err(failed)?;
        let mut bytes = Vec::new();
        for piece in ByteRange::new(0, len).into_iter().flat_map(chunks) {
            bytes.resize(to_usize(piece.len()), 0);
            self.file.read_at(piece.offset(), &mut bytes).map_err(failed)?;
            draft.write_at(piece.offset(), &bytes)?;
        }
        draft.publish()
    }

    /// Gives the backup of a completed change its final name, which contains the time, and returns
    /// that name.
    pub(super) fn finish(
        &self,
        target: ImageTarget<'_>,
        now_unix_s: u64,
    ) -> Result<FileName, DiskError> {
        let name = free_name(target, now_unix_s)?;
        target.files.rename(&self.name, &name)?;
        Ok(name)
    }

    /// Returns the time at which the backup was written, or copied for an undo.
    pub(super) fn written_time(&self, target: ImageTarget<'_>) -> Result<FileTime, DiskError> {
        self.file
            .modified()
            .map_err(|error| DiskError::new(target.show(&self.name), image_error_from_io(error)))
    }
}

/// Reads up to the empty line that ends a head. Returns the head and the file's length; `None` if
/// the file does not begin with a head.
fn read_head(file: &dyn ImageFile) -> Result<Option<(Vec<u8>, u64)>, FileError> {
    let len = file.len()?;
    let mut head: Vec<u8> = Vec::new();
    while (head.len() as u64) < len.min(HEAD_MAX) {
        let head_len = head.len();
        let piece = (len - head_len as u64).min(HEAD_PIECE);
        head.resize(head_len + to_usize(piece), 0);
        file.read_at(head_len as u64, head.get_mut(head_len..).unwrap_or_default())?;
        // A file of another kind is not read completely.
        if !head.starts_with(TITLE.as_bytes()) {
            return Ok(None);
        }
        let search_start = head_len.saturating_sub(1);
        let new = head.get(search_start..).unwrap_or_default();
        if let Some(end) = new.windows(2).position(|pair| pair == b"\n\n") {
            head.truncate(search_start + end + 2);
            return Ok(Some((head, len)));
        }
    }
    Ok(None)
}

/// Returns the name of the backup of an incomplete change of the target. Fails if it is too long.
fn unfinished_of(target: ImageTarget<'_>) -> Result<FileName, DiskError> {
    incomplete_change_backup_name(target.name).ok_or_else(|| no_room(target))
}

fn no_room(target: ImageTarget<'_>) -> DiskError {
    let value = target.name.file_name().to_owned();
    let allowed = "a name that leaves room for 30 bytes";
    DiskError::new(
        target.show(target.name),
        DiskFault::InvalidPlan { field: "file", value, allowed },
    )
}

/// Returns an unused name for a completed backup in the image's directory.
fn free_name(target: ImageTarget<'_>, now_unix_s: u64) -> Result<FileName, DiskError> {
    let mut nth = 1;
    loop {
        let suffix = if nth == 1 { String::new() } else { format!("-{nth}") };
        let last = format!("{}.backup-{now_unix_s}{suffix}", target.name.file_name());
        let name = target.name.with_file_name(&last).map_err(|_| no_room(target))?;
        match target.files.status(&name) {
            Err(error) if error.is_missing() => return Ok(name),
            Err(error) => return Err(error.into()),
            Ok(_) if nth == NAMES_MAX => {
                return Err(DiskError::new(target.show(&name), StoreFault::Exists));
            }
            Ok(_) => nth += 1,
        }
    }
}

/// Creates the error for a backup that does not match the image.
pub(super) fn backup_error(
    target: ImageTarget<'_>,
    backup: &FileName,
    reason: String,
) -> DiskError {
    let backup = target.show(backup);
    DiskError::new(target.show(target.name), DiskFault::BackupMismatch { backup, reason })
}

/// Creates an error that concerns the file as a whole.
pub(super) fn image_error_from_file(error: FileError) -> ImageError {
    ImageError::new("file", 0, error)
}

/// Creates an error that concerns the file as a whole from a system error.
pub(super) fn image_error_from_io(error: std::io::Error) -> ImageError {
    image_error_from_file(error.into())
}

pub(super) fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(ranges: &str) -> Option<BackupHeader> {
        let text = format!("{TITLE}\nlength 4096 2048 8192\nmodified -5 999\n{ranges}\n");
        BackupHeader::decode(text.as_bytes())
    }

    #[test]
    fn a_head_states_whole_sectors_in_order_and_no_more_than_a_plan_writes() {
        let decoded = head("range 0 512\nrange 1024 1024\n").unwrap();
        assert_eq!(decoded.modified, FileTime { unix_s: -5, ns: 999 });
        assert_eq!(BackupHeader::decode(&decoded.encode()), Some(decoded));
        assert!(head("").is_some());
        let max_len = SECTORS_MAX * SECTOR_BYTES;
        assert!(head(&format!("range 0 {max_len}\n")).is_some());
        for invalid in [
            "range 0 0\n".to_owned(),
            "range 1 512\n".to_owned(),
            "range 0 511\n".to_owned(),
            "range 1024 512\nrange 0 512\n".to_owned(),
            "range 0 1024\nrange 512 512\n".to_owned(),
            "range 0 512\nrange 512 512\n".to_owned(),
            format!("range 0 {max_len}\nrange {} 512\n", max_len + 512),
            format!("range {} 512\n", u64::MAX - 511),
            "range -512 512\n".to_owned(),
            "range 0\n".to_owned(),
        ] {
            assert_eq!(head(&invalid), None, "{invalid}");
        }
        for invalid in ["length 1 2 1", "length 1 2", "length -1 2 3"] {
            let text = format!("{TITLE}\n{invalid}\nmodified 1 2\n\n");
            assert_eq!(BackupHeader::decode(text.as_bytes()), None, "{invalid}");
        }
    }
}
