//! Changes of an image's metadata: planned in memory, backed up, then carried out.

use suimon_contract::{ImageChange, ImageChanges};
use suimon_image::{ImageError, ImageFault, ImageFile};
use suimon_ports::{FileName, FileUse};
use suimon_vhd::{Parent, ParentLocator, SizeRule};
use suimon_vhdx::Vhdx;

use super::backup::Backup;
use super::check::check_file;
use super::planned_file::{GuardedFile, PlannedFile, Touched};
use super::{ImageTarget, UNIT};
use crate::images::{
    DiskError, DiskFault, DiskFormat, OpenLayer, Opened, Seeds, has_left, recorded_paths,
    relative_path, verify,
};

pub(super) const SECTOR: u64 = 512;

/// Bytes at the beginning of a VHDX in which no payload can be.
const VHDX_HEADER_SECTION: u64 = 1 << 20;

/// Carries out a change of a file and names its steps.
type Run<'a> = dyn FnMut(&dyn ImageFile) -> Result<Vec<String>, ImageError> + 'a;

/// Repairs metadata of which there is a copy, replays the log of an image that was not closed, and
/// gives back unreferenced space at the end of the file. With `dry_run` nothing is written.
///
/// # Errors
/// The file is missing, locked, raw or of unconfirmed format; no copy is left of something without
/// which nothing can be read; or the file or the backup cannot be written.
pub fn repair(
    target: ImageTarget<'_>,
    dry_run: bool,
    seeds: &mut Seeds<'_>,
) -> Result<ImageChanges, DiskError> {
    let format = changeable(target)?;
    let guids = seeds.write_guids();
    let mut run = |file: &dyn ImageFile| match format {
        DiskFormat::Vhd => {
            let done = suimon_vhd::repair(file, SizeRule::Creator)?;
            Ok(done.into_iter().map(vhd_action).collect())
        }
        _ => {
            let repaired = suimon_vhdx::repair(file, &guids)?;
            Ok(repaired.done.into_iter().map(vhdx_action).collect())
        }
    };
    change(target, format, dry_run, seeds.now_unix_s, &mut run)
}

fn vhd_action(repair: suimon_vhd::Repair) -> String {
    use suimon_vhd::Repair;
    match repair {
        Repair::Footer { offset } => format!("write the footer at {offset} from its copy"),
        Repair::FooterCopy => "write the copy of the footer".to_owned(),
        Repair::Reclaimed { bytes } => format!("cut {bytes} unreferenced bytes off the file"),
    }
}

fn vhdx_action(repair: suimon_vhdx::Repair) -> String {
    use suimon_vhdx::Repair;
    match repair {
        Repair::Identifier => "write the signature of the file identifier".to_owned(),
        Repair::Header => "write the damaged header from the other".to_owned(),
        Repair::RegionTable { offset } => {
            format!("write the region table at {offset} from the other copy")
        }
        Repair::LogReplayed { entries } => {
            format!("replay {entries} entries of the log and close the image")
        }
        Repair::Reclaimed { bytes } => format!("cut {bytes} unreferenced bytes off the file"),
    }
}

/// Redoes acknowledged writes that a killed process left of an image, before it is changed.
///
/// # Errors
/// The image is in use, or cannot be opened so that they can be redone. With `dry_run` there are
/// such writes: nothing is written.
pub fn redo_left(
    target: ImageTarget<'_>,
    dry_run: bool,
    seeds: &mut Seeds<'_>,
) -> Result<(), DiskError> {
    let options = target.options(target.write_format()?, FileUse::Read);
    if !dry_run {
        return OpenLayer::redo_left(target.files.as_ref(), target.name, options, seeds);
    }
    let file = target.files.open(target.name, FileUse::Read, UNIT)?;
    if !has_left(file.as_ref(), target.name, seeds)? {
        return Ok(());
    }
    let what =
        "a dry run: acknowledged writes of a killed daemon have to be redone first".to_owned();
    let fault = ImageFault::Unsupported { what };
    Err(DiskError::new(target.show(target.name), ImageError::new("file", 0, fault)))
}

/// Records `parent` as the place of a differencing image's parent. It has to be the parent that the
/// image was made over, unchanged. With `dry_run` nothing is written.
///
/// # Errors
/// The image is not differencing, or has to be repaired first; `parent` is missing, or another
/// image; or as [`repair`].
pub fn relink(
    target: ImageTarget<'_>,
    parent: &FileName,
    dry_run: bool,
    seeds: &mut Seeds<'_>,
) -> Result<ImageChanges, DiskError> {
    let format = changeable(target)?;
    let options = target.options(format, FileUse::Read);
    let file = target.files.open(target.name, FileUse::Read, UNIT)?;
    let child = OpenLayer::on(file, target.name, options, None, seeds)?;
    if !child.is_differencing() {
        let allowed = "a differencing image: others have no parent";
        let value = target.show(target.name);
        let fault = DiskFault::Plan { field: "image", value, allowed };
        return Err(DiskError::new(target.show(target.name), fault));
    }
    let opened = OpenLayer::open(target.files.as_ref(), parent, options, seeds)?;
    verify(target.files.as_ref(), &child, &opened)?;
    let path = relative_path(target.name, parent);
    let action =
        format!("record {path} as the parent, instead of {}", recorded_paths(&child).join(", "));
    let modified = opened.modified(target.files.as_ref())?;
    let file_write = seeds.guid();
    let identity = (opened.identity(), modified);
    drop((child, opened));
    let mut run = |file: &dyn ImageFile| {
        match identity.0 {
            crate::images::Identity::Vhd(unique_id) => {
                let parent = Parent {
                    unique_id,
                    modified: identity.1,
                    name: parent.last().to_owned(),
                    locators: vec![ParentLocator::WindowsRelative(path.clone())],
                };
                suimon_vhd::relink(file, &parent, SizeRule::Creator)?;
            }
            crate::images::Identity::Vhdx { content, .. } => {
                suimon_vhdx::relink(file, content, &path, file_write)?;
            }
            crate::images::Identity::None => {}
        }
        Ok(vec![action.clone()])
    };
    change(target, format, dry_run, seeds.now_unix_s, &mut run)
}

/// The format of an image that has metadata.
fn changeable(target: ImageTarget<'_>) -> Result<DiskFormat, DiskError> {
    let format = target.write_format()?;
    if format.has_metadata() {
        return Ok(format);
    }
    let allowed = "an image of format vhd or vhdx: other files have no metadata";
    let fault = DiskFault::Plan { field: "format", value: format.word().to_owned(), allowed };
    Err(DiskError::new(target.show(target.name), fault))
}

fn change(
    target: ImageTarget<'_>,
    format: DiskFormat,
    dry_run: bool,
    now_unix_s: u64,
    run: &mut Run<'_>,
) -> Result<ImageChanges, DiskError> {
    let label = target.show(target.name);
    let failed = |error: ImageError| DiskError::new(label.clone(), error).or_full();
    let of_file = |error| failed(ImageError::new("file", 0, error));
    let used = if dry_run { FileUse::Read } else { FileUse::Write };
    let file = target.files.open(target.name, used, UNIT)?;
    let before = target.files.status(target.name)?;
    let planned = PlannedFile::new(file.as_image_file()).map_err(of_file)?;
    let actions = run(&planned).map_err(failed)?;
    let after_len = planned.len().map_err(of_file)?;
    let mut touched = planned.touched().map_err(of_file)?;
    touched.extend(planned.cut_end().map_err(of_file)?);
    refuse_payload(&planned, format, before.len, &touched).map_err(failed)?;
    let mut changes = ImageChanges {
        file: label.clone(),
        dry_run,
        actions,
        changes: changed(&touched),
        file_bytes_before: before.len,
        file_bytes_after: after_len,
        backup: None,
        check: check_file(&planned, format, label.clone()),
    };
    let is_same = changes.changes.is_empty() && after_len == before.len;
    if is_same || dry_run {
        return Ok(changes);
    }
    let backup = Backup { before, after_len, touched };
    changes.backup = Some(target.show(&backup.write(target, now_unix_s)?));
    let guarded =
        GuardedFile::new(file.as_image_file(), &backup.touched, after_len.min(before.len));
    run(&guarded).map_err(failed)?;
    guarded.flush().map_err(of_file)?;
    changes.check = check_file(file.as_image_file(), format, label.clone());
    drop(file);
    // Children of a VHD know it by the time of its last change, and its content is the same.
    target.files.set_modified(target.name, before.modified_unix_s)?;
    Ok(changes)
}

/// Fails if a planned change would touch payload. Where that cannot be told because the rest is
/// damaged, only headers and footers may be touched.
pub(super) fn refuse_payload(
    file: &dyn ImageFile,
    format: DiskFormat,
    len: u64,
    touched: &[Touched],
) -> Result<(), ImageError> {
    let payload = match format {
        DiskFormat::Vhd => suimon_vhd::payload_ranges(file, SizeRule::Creator),
        _ => Vhdx::open_read_only(file).map(|image| image.payload_ranges().collect()),
    };
    for stretch in touched {
        let is_payload = match (&payload, format) {
            (Ok(payload), _) => {
                payload.iter().any(|of| of.offset() < stretch.end() && stretch.offset < of.end())
            }
            (Err(_), DiskFormat::Vhd) => {
                stretch.offset >= SECTOR && stretch.end().saturating_add(SECTOR) <= len
            }
            (Err(_), _) => stretch.end() > VHDX_HEADER_SECTION,
        };
        if is_payload {
            let what = "a change of payload, which is never made".to_owned();
            let fault = ImageFault::Unsupported { what };
            return Err(ImageError::new("payload", stretch.offset, fault));
        }
    }
    Ok(())
}

/// Returns the sectors whose content differs, joined.
fn changed(touched: &[Touched]) -> Vec<ImageChange> {
    let mut all: Vec<ImageChange> = Vec::new();
    for stretch in touched {
        let sectors =
            stretch.before.chunks(SECTOR as usize).zip(stretch.after.chunks(SECTOR as usize));
        for ((before, after), nth) in sectors.zip(0_u64..) {
            if before == after {
                continue;
            }
            let offset = stretch.offset.saturating_add(nth * SECTOR);
            match all.last_mut().filter(|last| last.offset + last.bytes == offset) {
                Some(last) => last.bytes += SECTOR,
                None => all.push(ImageChange { offset, bytes: SECTOR }),
            }
        }
    }
    all
}

impl Opened {
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
