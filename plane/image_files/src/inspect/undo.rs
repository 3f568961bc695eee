//! Reversal of metadata changes, complete and incomplete.

use suimon_contract::ImageChanges;
use suimon_image::{ImageError, ImageFile};
use suimon_ports::{DiskFile, FileLockMode, FileName, FileTime};

use super::backup::{Backup, backup_error, image_error_from_file, image_error_from_io};
use super::check::check_file;
use super::planned_file::{GuardedFile, PlannedFile, SECTOR_BYTES, read_padded};
use super::{ImageTarget, UNIT};
use crate::inspect::changed_image::{format_for_change, image_change, set_modification_time};
use crate::inspect::payload::{check_writes_no_payload, for_each_payload_range};
use crate::{DiskError, DiskFault, DiskFormat, incomplete_change_backup_name};

/// Maximum duration of a change in seconds. If an image was modified later than this after the
/// backup of an incomplete change, another program has modified it.
const CARRIED_OUT_S: i64 = 600;

/// Reverts a repair or relink: writes the content of a backup if the image is still as that change
/// left it. With `dry_run`, nothing is written, and the report describes the resulting image.
///
/// # Errors
/// The image is raw or of unconfirmed format; a file is missing or locked; `backup` is not a
/// backup; the image was changed since; or payload would be written or truncated.
pub fn undo(
    target: ImageTarget<'_>,
    backup: &FileName,
    dry_run: bool,
) -> Result<ImageChanges, DiskError> {
    let format = format_for_change(target)?;
    let is_unfinished = incomplete_change_backup_name(target.name).as_ref() == Some(backup);
    let other = if is_unfinished { None } else { Backup::find_incomplete(target)? };
    if let Some(other) = other {
        let backup = target.show(&other.name);
        let fault = DiskFault::MetadataChangeIncomplete { backup };
        return Err(DiskError::new(target.show(target.name), fault));
    }
    let backup = Backup::open(target, backup)?;
    revert(target, format, &backup, is_unfinished, dry_run)
}

/// Reverts an incomplete change before another change. Returns a description of the action; `None`
/// if there was no incomplete change.
///
/// # Errors
/// The image was changed since, or cannot be written. With `dry_run`: an incomplete change exists;
/// nothing was written.
pub(super) fn revert_incomplete_change(
    target: ImageTarget<'_>,
    format: DiskFormat,
    dry_run: bool,
) -> Result<Option<String>, DiskError> {
    let Some(backup) = Backup::find_incomplete(target)? else { return Ok(None) };
    if dry_run {
        let backup = target.show(&backup.name);
        let fault = DiskFault::MetadataChangeIncomplete { backup };
        return Err(DiskError::new(target.show(target.name), fault));
    }
    revert(target, format, &backup, true, false)?;
    let name = target.show(&backup.name);
    Ok(Some(format!("revert an incomplete change whose backup is {name}")))
}

fn revert(
    target: ImageTarget<'_>,
    format: DiskFormat,
    undo_backup: &Backup,
    is_unfinished: bool,
    dry_run: bool,
) -> Result<ImageChanges, DiskError> {
    let label = target.show(target.name);
    let failed = |error: ImageError| DiskError::new(label.clone(), error).normalize_store_full();
    let used = if dry_run { FileLockMode::Read } else { FileLockMode::Write };
    let file = target.files.open(target.name, used, UNIT)?;
    let len = file.len().map_err(|error| failed(image_error_from_file(error)))?;
    let modified = file.modified().map_err(|error| failed(image_error_from_io(error)))?;
    refuse_other_time(target, undo_backup, modified, is_unfinished)?;
    refuse_other_content(target, undo_backup, file.as_image_file(), len)?;
    let check = {
        let base = file.as_image_file();
        let before = planned(target, undo_backup, base, false)?;
        refuse_damage(target, format, undo_backup, base, &before)?;
        check_file(&before, format, label.clone())
    };
    if !dry_run {
        set_modification_time(target, file.as_ref(), modified)?;
        if !is_unfinished {
            undo_backup.copy_as_incomplete(target)?;
        }
        restore_from_backup(target, file.as_ref(), undo_backup)
            .map_err(|error| incomplete_change_error(target, error))?;
    }
    let backup = target.show(&undo_backup.name);
    Ok(ImageChanges {
        file: label,
        dry_run,
        actions: vec![format!("restore the metadata of {backup}")],
        changes: undo_backup.header.ranges.iter().copied().map(image_change).collect(),
        file_bytes_before: len,
        file_bytes_after: undo_backup.header.lengths.before,
        backup: None,
        check,
    })
}

/// Creates the error for a change that failed and was not reverted.
pub(super) fn incomplete_change_error(target: ImageTarget<'_>, error: DiskError) -> DiskError {
    let backup = incomplete_change_backup_name(target.name)
        .map_or_else(String::new, |name| target.show(&name));
    let fault = DiskFault::MetadataChangeFailed { backup, error: Box::new(error) };
    DiskError::new(target.show(target.name), fault)
}

/// Restores content, length and modification time from before the change, and removes the backup of
/// the incomplete change.
pub(super) fn restore_from_backup(
    target: ImageTarget<'_>,
    file: &dyn DiskFile,
    backup: &Backup,
) -> Result<(), DiskError> {
    let failed = |error| {
        DiskError::new(target.show(target.name), image_error_from_file(error))
            .normalize_store_full()
    };
    let (lengths, ranges) = (backup.header.lengths, &backup.header.ranges);
    let len = file.len().map_err(failed)?;
    let largest = lengths.largest.max(ranges.last().map_or(0, |last| last.end()));
    let guarded =
        GuardedFile::new(file.as_image_file(), ranges, lengths.before.min(len)..=largest.max(len));
    backup.for_each_chunk(target, &mut |offset, before, _| {
        guarded.write_at(offset, before).map_err(failed)
    })?;
    guarded.set_len(lengths.before).and_then(|()| guarded.flush()).map_err(failed)?;
    set_modification_time(target, file, backup.header.modified)?;
    if let Some(unfinished) = incomplete_change_backup_name(target.name) {
        target.files.remove(&unfinished)?;
    }
    Ok(())
}

/// Fails if the image's modification time shows that it was written to since the change.
fn refuse_other_time(
    target: ImageTarget<'_>,
    backup: &Backup,
    modified: FileTime,
    is_unfinished: bool,
) -> Result<(), DiskError> {
    let expected = backup.header.modified;
    if modified == expected {
        return Ok(());
    }
    if is_unfinished {
        let written_at = backup.written_time(target)?;
        let end = written_at.unix_s.saturating_add(CARRIED_OUT_S);
        // File systems round modification times.
        if (written_at.unix_s.saturating_sub(2)..=end).contains(&modified.unix_s) {
            return Ok(());
        }
    }
    let seconds = |time: FileTime| format!("{}.{:09}", time.unix_s, time.ns);
    let reason = format!(
        "the image was written to since: its modification time is {}, and the change set {}; if \
         only the time was changed, run `touch -d @{} {}`",
        seconds(modified),
        seconds(expected),
        seconds(expected),
        target.show(target.name)
    );
    Err(backup_error(target, &backup.name, reason))
}

/// Fails if the content of a sector is neither that before nor that after the change, or if the
/// file has a length that it never had during the change.
fn refuse_other_content(
    target: ImageTarget<'_>,
    backup: &Backup,
    file: &dyn ImageFile,
    len: u64,
) -> Result<(), DiskError> {
    let written_to = |subject: String| {
        let reason = format!(
            "{subject} is neither that before nor that after the change; the image was written to \
             since"
        );
        Err(backup_error(target, &backup.name, reason))
    };
    let lengths = backup.header.lengths;
    if !(lengths.before.min(lengths.after)..=lengths.largest).contains(&len) {
        return written_to(format!("the length of {len} bytes"));
    }
    let mut content = Vec::new();
    backup.for_each_chunk(target, &mut |offset, before, after| {
        content.resize(before.len(), 0);
        read_padded(file, len, offset, &mut content).map_err(|error| {
            DiskError::new(target.show(target.name), image_error_from_file(error))
        })?;
        let sector = SECTOR_BYTES as usize;
        let sectors = content.chunks(sector).zip(before.chunks(sector).zip(after.chunks(sector)));
        for ((sector, (before, after)), nth) in sectors.zip(0_u64..) {
            if sector != before && sector != after {
                return written_to(format!("the sector at {}", offset + nth * SECTOR_BYTES));
            }
        }
        Ok(())
    })
}

/// Returns the image before (`is_after` false) or after a change, as a file in memory.
fn planned<'a>(
    target: ImageTarget<'_>,
    backup: &Backup,
    base: &'a dyn ImageFile,
    is_after: bool,
) -> Result<PlannedFile<'a>, DiskError> {
    let failed = |error| DiskError::new(target.show(target.name), image_error_from_file(error));
    let planned = PlannedFile::new(base).map_err(failed)?;
    backup.for_each_chunk(target, &mut |offset, before, after| {
        planned.write_at(offset, if is_after { after } else { before }).map_err(failed)
    })?;
    let lengths = backup.header.lengths;
    let len = if is_after { lengths.after } else { lengths.before };
    planned.set_len(len).map_err(failed)?;
    Ok(planned)
}

/// Fails if payload would be written or truncated. This is checked for the current image, for the
/// result, and for the image as the change left it. A guest may have written a file that resembles
/// a backup.
fn refuse_damage(
    target: ImageTarget<'_>,
    format: DiskFormat,
    backup: &Backup,
    base: &dyn ImageFile,
    before: &PlannedFile<'_>,
) -> Result<(), DiskError> {
    let failed = |error| DiskError::new(target.show(target.name), error);
    let lengths = backup.header.lengths;
    let ranges = &backup.header.ranges;
    let after = planned(target, backup, base, true)?;
    let len = base.len().map_err(|error| failed(image_error_from_file(error)))?;
    let states: [&dyn ImageFile; 3] = [base, before, &after];
    check_writes_no_payload(&states, format, lengths.before.max(len), ranges).map_err(failed)?;
    if lengths.before >= len {
        return Ok(());
    }
    let (mut end, mut is_readable) = (0, false);
    for state in [base, &after, before] {
        is_readable = for_each_payload_range(state, format, &mut |payload| {
            end = end.max(payload.end());
            Ok(())
        })
        .map_err(failed)?;
    }
    let len = lengths.before;
    let reason = if len < end {
        format!("the restored file would have {len} bytes, but payload ends at {end}")
    } else if !is_readable {
        // All structures of a readable image are within its file.
        format!("the restored file would have {len} bytes, with which the image could not be read")
    } else {
        return Ok(());
    };
    Err(backup_error(target, &backup.name, reason))
}
