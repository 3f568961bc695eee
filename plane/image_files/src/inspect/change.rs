//! Changes of an image's metadata: planned in memory, backed up, then carried out.

use suimon_contract::{ImageChange, ImageChanges};
use suimon_image::{ByteRange, FileError, ImageError, ImageFault, ImageFile};
use suimon_ports::{DiskFile, FileLockMode, FileName};
use suimon_vhd::{Parent, ParentLocator, SizeSource};

use super::backup::{Backup, BackupHeader, image_error_from_file, image_error_from_io, to_usize};
use super::check::check_file;
use super::planned_file::{GuardedFile, PlannedFile, RangeBuilder, SECTOR_BYTES, chunks};
use super::undo::{incomplete_change_error, restore_from_backup, revert_incomplete_change};
use super::{ImageTarget, UNIT};
use crate::inspect::changed_image::{format_for_change, image_change, set_modification_time};
use crate::inspect::payload::check_writes_no_payload;
use crate::{
    DiskError, DiskFault, DiskFormat, HostInputs, OpenLayer, OpenedImage, has_remaining_record,
    recorded_paths, relative_path, verify,
};

/// Function that performs a change on a file and returns a description of each action.
type Run<'a> = dyn FnMut(&dyn ImageFile) -> Result<Vec<String>, ImageError> + 'a;

/// Repairs metadata that has a copy, replays the log of an image that was not closed, and releases
/// unreferenced space at the end of the file. With `dry_run`, nothing is written.
///
/// # Errors
/// The file is missing, locked, raw or of unconfirmed format; essential metadata has no intact
/// copy; or the file or the backup cannot be written.
pub fn repair(
    target: ImageTarget<'_>,
    dry_run: bool,
    seeds: &mut HostInputs<'_>,
) -> Result<ImageChanges, DiskError> {
    let format = format_for_change(target)?;
    let taken_back = revert_incomplete_change(target, format, dry_run)?;
    let guids = seeds.write_guids();
    let mut run = |file: &dyn ImageFile| match format {
        DiskFormat::Vhd => {
            let actions = suimon_vhd::repair(file, SizeSource::Creator)?;
            Ok(actions.into_iter().map(vhd_action).collect())
        }
        _ => {
            let repaired = suimon_vhdx::repair(file, &guids)?;
            Ok(repaired.performed_repairs.into_iter().map(vhdx_action).collect())
        }
    };
    let mut changes = change(target, format, dry_run, seeds.now_unix_s, &mut run)?;
    changes.actions.splice(..0, taken_back);
    Ok(changes)
}

fn vhd_action(repair: suimon_vhd::RepairAction) -> String {
    use suimon_vhd::RepairAction;
    match repair {
        RepairAction::Footer { offset } => format!("write the footer at {offset} from its copy"),
        RepairAction::FooterCopy => "write the copy of the footer".to_owned(),
        RepairAction::SpaceReleased { bytes } => {
            format!("remove {bytes} unreferenced bytes at the end of the file")
        }
    }
}

fn vhdx_action(repair: suimon_vhdx::RepairAction) -> String {
    use suimon_vhdx::RepairAction;
    match repair {
        RepairAction::Identifier => "write the signature of the file identifier".to_owned(),
        RepairAction::Header => "write the damaged header from the other".to_owned(),
        RepairAction::RegionTable { offset } => {
            format!("write the region table at {offset} from the other copy")
        }
        RepairAction::LogReplayed { entries } => {
            format!("replay {entries} entries of the log and close the image")
        }
        RepairAction::SpaceReleased { bytes } => {
            format!("remove {bytes} unreferenced bytes at the end of the file")
        }
    }
}

/// Applies the metadata changes that a killed process recorded for completed writes. Called before
/// another change of the image.
///
/// # Errors
/// The image is in use, or cannot be opened for writing. With `dry_run`: such changes exist;
/// nothing was written.
pub fn apply_remaining_redo(
    target: ImageTarget<'_>,
    dry_run: bool,
    seeds: &mut HostInputs<'_>,
) -> Result<(), DiskError> {
    let options = target.options(target.write_format()?, FileLockMode::Read);
    if !dry_run {
        return OpenLayer::redo_remaining(target.files.as_ref(), target.name, options, seeds);
    }
    let file = target.files.open(target.name, FileLockMode::Read, UNIT)?;
    if !has_remaining_record(file.as_ref(), target.name, seeds)? {
        return Ok(());
    }
    let operation =
        "a dry run; completed writes of the previous daemon must be redone first".to_owned();
    let fault = ImageFault::Unsupported { feature: operation };
    Err(DiskError::new(target.show(target.name), ImageError::new("file", 0, fault)))
}

/// Records `parent` as the location of a differencing image's parent. `parent` must be the parent
/// for which the image was created, unchanged. With `dry_run`, nothing is written.
///
/// # Errors
/// The image is not differencing, or must be repaired first; `parent` is missing, or is not the
/// recorded parent; or an error of [`repair`].
pub fn set_parent(
    target: ImageTarget<'_>,
    parent: &FileName,
    dry_run: bool,
    seeds: &mut HostInputs<'_>,
) -> Result<ImageChanges, DiskError> {
    let format = format_for_change(target)?;
    let taken_back = revert_incomplete_change(target, format, dry_run)?;
    let options = target.options(format, FileLockMode::Read);
    let file = target.files.open(target.name, FileLockMode::Read, UNIT)?;
    let child = OpenLayer::from_file(file, target.name, options, None, seeds)?;
    if !child.is_differencing() {
        let allowed = "a differencing image; other images have no parent";
        let value = target.show(target.name);
        let fault = DiskFault::InvalidPlan { field: "image", value, allowed };
        return Err(DiskError::new(target.show(target.name), fault));
    }
    let opened = if dry_run {
        OpenLayer::open(target.files.as_ref(), parent, options, &mut seeds.with_records_kept())?
    } else {
        OpenLayer::open(target.files.as_ref(), parent, options, seeds)?
    };
    verify(target.files.as_ref(), &child, &opened)?;
    let path = relative_path(target.name, parent);
    let action =
        format!("record {path} as the parent, instead of {}", recorded_paths(&child).join(", "));
    let modified = opened.modified_vhd_time(target.files.as_ref())?;
    let file_write = seeds.guid();
    let identity = (opened.identity(), modified);
    drop((child, opened));
    let mut run = |file: &dyn ImageFile| {
        match identity.0 {
            crate::Identity::Vhd(unique_id) => {
                let parent = Parent {
                    unique_id,
                    modified_s_since_2000: identity.1,
                    name: parent.file_name().to_owned(),
                    locators: vec![ParentLocator::WindowsRelative(path.clone())],
                };
                suimon_vhd::set_parent_path(file, &parent, SizeSource::Creator)?;
            }
            crate::Identity::Vhdx { content, .. } => {
                suimon_vhdx::set_parent_path(file, content, &path, file_write)?;
            }
            crate::Identity::None => {}
        }
        Ok(vec![action.clone()])
    };
    let mut changes = change(target, format, dry_run, seeds.now_unix_s, &mut run)?;
    changes.actions.splice(..0, taken_back);
    Ok(changes)
}

fn change(
    target: ImageTarget<'_>,
    format: DiskFormat,
    dry_run: bool,
    now_unix_s: u64,
    run: &mut Run<'_>,
) -> Result<ImageChanges, DiskError> {
    let label = target.show(target.name);
    let failed = |error: ImageError| DiskError::new(label.clone(), error).normalize_store_full();
    let of_file = |error| failed(image_error_from_file(error));
    let used = if dry_run { FileLockMode::Read } else { FileLockMode::Write };
    let file = target.files.open(target.name, used, UNIT)?;
    let modified = file.modified().map_err(|error| failed(image_error_from_io(error)))?;
    let planned = PlannedFile::new(file.as_image_file()).map_err(of_file)?;
    let actions = run(&planned).map_err(failed)?;
    let lengths = planned.lengths().map_err(of_file)?;
    let ranges = planned.ranges();
    check_writes_no_payload(&[&planned], format, lengths.before, &ranges).map_err(failed)?;
    let mut changes = ImageChanges {
        file: label.clone(),
        dry_run,
        actions,
        changes: changed(&planned, &ranges).map_err(of_file)?,
        file_bytes_before: lengths.before,
        file_bytes_after: lengths.after,
        backup: None,
        check: check_file(&planned, format, label.clone()),
    };
    let is_same = changes.changes.is_empty() && lengths.after == lengths.before;
    if is_same || dry_run {
        return Ok(changes);
    }
    set_modification_time(target, file.as_ref(), modified)?;
    let backup = Backup::write(target, BackupHeader { lengths, modified, ranges }, &planned)?;
    // The plan is not needed any more, and may use much memory.
    drop(planned);
    let min_len = lengths.before.min(lengths.after);
    let ranges = &backup.header.ranges;
    let guarded = GuardedFile::new(file.as_image_file(), ranges, min_len..=lengths.largest);
    let result =
        run(&guarded).and_then(|_| guarded.flush().map_err(image_error_from_file)).map_err(failed);
    // Children of a VHD identify it by the time of its last change. The content of the disk is
    // unchanged.
    let backup_name = result
        .and_then(|()| set_modification_time(target, file.as_ref(), modified))
        .and_then(|()| backup.finish(target, now_unix_s))
        .map_err(|error| after_failure(target, file.as_ref(), &backup, error))?;
    changes.backup = Some(target.show(&backup_name));
    changes.check = check_file(file.as_image_file(), format, label);
    Ok(changes)
}

/// Reverts a failed change. Returns `error` if that succeeds; otherwise an error that names the
/// backup and states the required action.
fn after_failure(
    target: ImageTarget<'_>,
    file: &dyn DiskFile,
    backup: &Backup,
    error: DiskError,
) -> DiskError {
    match restore_from_backup(target, file, backup) {
        Ok(()) => error,
        Err(_) => incomplete_change_error(target, error),
    }
}

/// Returns the sectors of `ranges` whose content the plan changes, merged to ranges.
fn changed(planned: &PlannedFile<'_>, ranges: &[ByteRange]) -> Result<Vec<ImageChange>, FileError> {
    let mut changed_ranges = RangeBuilder::default();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for piece in ranges.iter().copied().flat_map(chunks) {
        before.resize(to_usize(piece.len()), 0);
        after.resize(to_usize(piece.len()), 0);
        planned.read_before(piece.offset(), &mut before)?;
        planned.read_after(piece.offset(), &mut after)?;
        let sectors = before.chunks(SECTOR_BYTES as usize).zip(after.chunks(SECTOR_BYTES as usize));
        for ((before, after), nth) in sectors.zip(0_u64..) {
            if before != after {
                changed_ranges.add_sector(piece.offset().saturating_add(nth * SECTOR_BYTES));
            }
        }
    }
    Ok(changed_ranges.joined.into_iter().map(image_change).collect())
}

impl OpenedImage {
    /// Returns true if the image was not closed.
    fn is_dirty(&self) -> bool {
        matches!(self, Self::Vhdx(image) if image.is_dirty())
    }
}

impl OpenLayer {
    /// Returns true if the image was not closed.
    pub(super) fn is_dirty(&self) -> bool {
        self.image.is_dirty()
    }
}
