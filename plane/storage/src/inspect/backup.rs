//! The former metadata of an image, in a file beside it.
//!
//! ```text
//! Suimon image backup 1
//! length BEFORE AFTER
//! modified SECONDS
//! range OFFSET BYTES
//! …
//!
//! for each range: its content before, then after
//! ```

use core::fmt::Write as _;

use suimon_contract::{ImageChange, ImageChanges};
use suimon_image::ImageError;
use suimon_ports::{FileName, FileStatus, FileUse, StoreFault};

use super::change::refuse_payload;
use super::check::check_file;
use super::planned_file::{Touched, read_padded};
use super::{ImageTarget, UNIT};
use crate::images::{DiskError, DiskFault, Draft};

const TITLE: &str = "Suimon image backup 1";

/// Bytes of a backup that are read: both contents of what a plan may touch, and the head.
const BYTES_MAX: u64 = (2 << 27) + HEAD_MAX;
/// Bytes of a head: as many ranges as sectors may be touched.
const HEAD_MAX: u64 = 16 << 20;

/// Backups of one image within a second.
const NAMES_MAX: u32 = 100;

/// See the module.
pub(super) struct Backup {
    pub(super) before: FileStatus,
    pub(super) after_len: u64,
    pub(super) touched: Vec<Touched>,
}

impl Backup {
    /// Writes the backup under a name that no file has. It is durable when this returns.
    pub(super) fn write(
        &self,
        target: ImageTarget<'_>,
        now_unix_s: u64,
    ) -> Result<FileName, DiskError> {
        let name = free_name(target, now_unix_s)?;
        let draft = Draft::new(target.files, &name, UNIT)?;
        draft.write(&self.encode())?;
        draft.publish()?;
        Ok(name)
    }

    fn encode(&self) -> Vec<u8> {
        let mut head = format!(
            "{TITLE}\nlength {} {}\nmodified {}\n",
            self.before.len, self.after_len, self.before.modified_unix_s
        );
        for stretch in &self.touched {
            // A string takes all that is written to it.
            let _ = writeln!(head, "range {} {}", stretch.offset, stretch.after.len());
        }
        head.push('\n');
        let mut bytes = head.into_bytes();
        for stretch in &self.touched {
            bytes.extend_from_slice(&stretch.before);
            bytes.extend_from_slice(&stretch.after);
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let head_len = bytes.windows(2).position(|pair| pair == b"\n\n")?;
        let head = core::str::from_utf8(bytes.get(..head_len)?).ok()?;
        let mut content = bytes.get(head_len + 2..)?;
        let mut lines = head.lines();
        if lines.next() != Some(TITLE) {
            return None;
        }
        let mut numbers = |word: &str| -> Option<Vec<u64>> {
            let rest = lines.next()?.strip_prefix(word)?;
            rest.split_whitespace().map(|number| number.parse().ok()).collect()
        };
        let (lengths, modified) = (numbers("length")?, numbers("modified")?);
        let (&[len, after_len], &[modified_unix_s]) = (lengths.as_slice(), modified.as_slice())
        else {
            return None;
        };
        let mut touched = Vec::new();
        while let Some(range) = numbers("range") {
            let &[offset, stretch] = range.as_slice() else { return None };
            let stretch = usize::try_from(stretch).ok()?;
            let (before, rest) = content.split_at_checked(stretch)?;
            let (after, rest) = rest.split_at_checked(stretch)?;
            touched.push(Touched { offset, before: before.to_vec(), after: after.to_vec() });
            content = rest;
        }
        let before = FileStatus { len, allocated_bytes: 0, modified_unix_s };
        content.is_empty().then_some(Self { before, after_len, touched })
    }
}

/// Returns a name beside the image that no file has.
fn free_name(target: ImageTarget<'_>, now_unix_s: u64) -> Result<FileName, DiskError> {
    let mut nth = 1;
    loop {
        let more = if nth == 1 { String::new() } else { format!("-{nth}") };
        let last = format!("{}.backup-{now_unix_s}{more}", target.name.last());
        let name = target.name.sibling(&last).map_err(|bad| {
            let value = format!("{last} ({bad})");
            let allowed = "a name that leaves room for 32 bytes";
            let fault = DiskFault::Plan { field: "file", value, allowed };
            DiskError::new(target.show(target.name), fault)
        })?;
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

/// Takes a repair or relink back: writes what a backup has, if the image is still what that change
/// left. With `dry_run` nothing is written.
///
/// # Errors
/// A file is missing or locked, `backup` is no backup, or the image was changed since.
pub fn undo(
    target: ImageTarget<'_>,
    backup: &FileName,
    dry_run: bool,
) -> Result<ImageChanges, DiskError> {
    let label = target.show(target.name);
    let failed = |error| DiskError::new(label.clone(), ImageError::new("file", 0, error)).or_full();
    let refuse = |allowed| {
        let value = target.show(backup);
        DiskError::new(label.clone(), DiskFault::Plan { field: "backup", value, allowed })
    };
    let format = target.read_format()?;
    let kept = target.files.open(backup, FileUse::Read, UNIT)?;
    let kept_len = kept.len().map_err(failed)?;
    if kept_len > BYTES_MAX {
        return Err(refuse("a backup of `suimon image repair` or `relink`"));
    }
    let mut bytes = vec![0; usize::try_from(kept_len).unwrap_or(0)];
    kept.read_at(0, &mut bytes).map_err(failed)?;
    let Some(kept) = Backup::decode(&bytes) else {
        return Err(refuse("a backup of `suimon image repair` or `relink`"));
    };
    let used = if dry_run { FileUse::Read } else { FileUse::Write };
    let file = target.files.open(target.name, used, UNIT)?;
    let len = file.len().map_err(failed)?;
    let mut is_same = len == kept.after_len;
    for stretch in &kept.touched {
        let mut found = vec![0; stretch.after.len()];
        read_padded(file.as_image_file(), len, stretch.offset, &mut found).map_err(failed)?;
        is_same &= found == stretch.after;
    }
    if !is_same {
        return Err(refuse("the backup of the image's last change: it was written to since"));
    }
    // Where a file only looks like a backup, a guest may have written it.
    refuse_payload(file.as_image_file(), format, len, &kept.touched)
        .map_err(|error| DiskError::new(label.clone(), error))?;
    if !dry_run {
        for stretch in &kept.touched {
            file.write_at(stretch.offset, &stretch.before).map_err(failed)?;
        }
        file.set_len(kept.before.len).and_then(|()| file.flush()).map_err(failed)?;
    }
    let check = check_file(file.as_image_file(), format, label.clone());
    drop(file);
    if !dry_run {
        target.files.set_modified(target.name, kept.before.modified_unix_s)?;
    }
    let range = |of: &Touched| ImageChange { offset: of.offset, bytes: of.after.len() as u64 };
    Ok(ImageChanges {
        file: label.clone(),
        dry_run,
        actions: vec![format!("write the metadata that {} has", target.show(backup))],
        changes: kept.touched.iter().map(range).collect(),
        file_bytes_before: len,
        file_bytes_after: kept.before.len,
        backup: None,
        check,
    })
}
