//! Properties of an image file.

use suimon_contract::{ImageInfo, ImageParent};
use suimon_ports::{FileLockMode, FileName, StoreFiles};

use super::{ImageTarget, RAW_SECTORS, UNIT, contract_format};
use crate::{
    DiskError, DiskFormat, DiskKind, HostInputs, Identity, LayerOptions, OpenLayer,
    RemainingRecordPolicy, candidates, find_parent, recorded_paths,
};

/// Reads the properties of an image, and searches its parent. Nothing is written: redo records of
/// the parent that a killed daemon left remain.
///
/// # Errors
/// The file is missing, locked, not of the format, or damaged so that it cannot be opened.
pub fn info(target: ImageTarget<'_>, seeds: &mut HostInputs<'_>) -> Result<ImageInfo, DiskError> {
    let format = target.read_format()?;
    let options = target.options(format, FileLockMode::Read);
    let file = target.files.open(target.name, FileLockMode::Read, UNIT)?;
    let layer = OpenLayer::from_file(file, target.name, options, None, seeds)?;
    let status = target.files.status(target.name)?;
    let shape = layer.geometry();
    let (disk_id, content_id) = match layer.identity() {
        Identity::None => (None, None),
        Identity::Vhd(id) => (Some(id.iter().map(|byte| format!("{byte:02x}")).collect()), None),
        Identity::Vhdx { disk, content } => (Some(disk.to_string()), Some(content.to_string())),
    };
    let parent = layer.is_differencing().then(|| {
        let (recorded, candidates) = (recorded_paths(&layer), candidates(&layer));
        let seeds = &mut seeds.with_records_kept();
        match find_parent(
            target.files.as_ref(),
            &layer,
            recorded.clone(),
            &candidates,
            options,
            seeds,
        ) {
            Ok(parent) => ImageParent {
                recorded_paths: recorded,
                found_file: Some(target.show(&parent.name)),
                reason: None,
            },
            Err(error) => ImageParent {
                recorded_paths: recorded,
                found_file: None,
                reason: Some(error.fault.to_string()),
            },
        }
    });
    Ok(ImageInfo {
        file: target.show(target.name),
        format: contract_format(format),
        kind: layer.kind().map(contract_kind),
        size_bytes: shape.size_bytes,
        file_bytes: status.len,
        allocated_bytes: status.allocated_bytes,
        block_bytes: layer.block_bytes().filter(|_| format != DiskFormat::Raw),
        logical_sector_bytes: shape.logical_sector_bytes,
        physical_sector_bytes: shape.physical_sector_bytes,
        dirty: layer.is_dirty(),
        disk_id,
        content_id,
        parent,
    })
}

/// Returns the kind of an image; `None` for a raw file. Redo records are neither applied nor
/// needed, because they do not change the kind.
///
/// # Errors
/// The file is missing, locked, not of the format, or damaged so that it cannot be opened.
pub fn kind(
    files: &dyn StoreFiles,
    name: &FileName,
    format: DiskFormat,
) -> Result<Option<DiskKind>, DiskError> {
    let used = FileLockMode::Read;
    let options =
        LayerOptions { format, lock_mode: used, io_alignment: UNIT, sector_sizes: RAW_SECTORS };
    let file = files.open(name, used, UNIT)?;
    let seeds = &mut HostInputs {
        random: &mut || [0; 16],
        now_unix_s: 0,
        redo_records: None,
        remaining_redo_records: RemainingRecordPolicy::Keep,
    };
    Ok(OpenLayer::from_file(file, name, options, None, seeds)?.kind())
}

const fn contract_kind(kind: DiskKind) -> suimon_contract::DiskKind {
    match kind {
        DiskKind::Fixed => suimon_contract::DiskKind::Fixed,
        DiskKind::Dynamic => suimon_contract::DiskKind::Dynamic,
        DiskKind::Differencing => suimon_contract::DiskKind::Differencing,
    }
}
