//! Gives a disk more bytes, and a child.

use std::sync::Arc;

use suimon_image::ImageError;
use suimon_ports::{FileName, FileUse, StoreFiles};
use suimon_vhd::SizeRule;

use crate::images::{
    DiskError, DiskFault, DiskFormat, DiskKind, DiskPlan, LAYERS_MAX, Seeds, close, create, open,
};

/// Gives a disk `size` bytes: what is new reads as zeros. The disk is closed; whoever serves it holds requests back, closes it, resizes and opens it
/// again. A crash leaves it with one of the two sizes. Returns the size.
///
/// A child's parent, and children of the disk, are not changed.
///
/// # Errors
/// The size is not possible or less than now; the store has no room for what a fixed disk
/// needs; or the image is broken, in use, or cannot be written. Then the size is the old
/// one, unless the file system ran out of room between asking and setting it aside.
pub fn resize(
    files: &dyn StoreFiles,
    plan: &DiskPlan,
    size: u64,
    seeds: &mut Seeds<'_>,
) -> Result<u64, DiskError> {
    plan.check()?;
    plan.check_size(size)?;
    let name = plan.named()?;
    // It is the disk that is planned, with its parents, and sound.
    let disk = open(files, plan, seeds)?;
    let (before, kind) = (disk.shape.size, disk.kind);
    close(disk.spec, &plan.label())?;
    if size < before {
        let allowed = "as much as now, or more: disks only grow";
        return Err(plan.refuse("size", &size, allowed));
    }
    if size == before {
        return Ok(size);
    }
    if kind == DiskKind::Fixed {
        let (needed, free) = (size - before, files.space()?.free_bytes);
        if free < needed {
            return Err(plan.error(DiskFault::NoRoom { needed, free }));
        }
    }
    let file = files.open(name, FileUse::Write, plan.unit())?;
    let resized = match plan.format {
        DiskFormat::Raw | DiskFormat::PassThrough => file
            .set_len(size)
            .and_then(|()| file.flush())
            .map(|()| size)
            .map_err(|error| ImageError::new("file", 0, error)),
        DiskFormat::Vhd => suimon_vhd::resize(file.as_image_file(), size, SizeRule::Creator),
        DiskFormat::Vhdx => {
            suimon_vhdx::resize(file.as_image_file(), size, &seeds.write_guids()).map(|()| size)
        }
    };
    let resized = resized.map_err(|error| plan.error(error).or_full())?;
    if kind == DiskKind::Fixed {
        files.reserve(name)?;
    }
    Ok(resized)
}

/// Makes a child of a disk's image, with which the disk goes on. The image is its parent
/// from now on: nobody may write to it any more, which its locks see to while the child is
/// open. The disk is closed. Returns the plan of the child.
///
/// # Errors
/// The format has no children, there is a file of that name, the disk has as many layers as
/// one may have, or as [`create`]. Then there is no child.
pub fn snapshot(
    files: &Arc<dyn StoreFiles>,
    plan: &DiskPlan,
    child: FileName,
    seeds: &mut Seeds<'_>,
) -> Result<DiskPlan, DiskError> {
    if !matches!(plan.format, DiskFormat::Vhd | DiskFormat::Vhdx) {
        let allowed = "vhd or vhdx: convert the disk first";
        return Err(plan.refuse("format", &plan.format.word(), allowed));
    }
    let of_child = DiskPlan {
        kind: Some(DiskKind::Differencing),
        file: Some(child),
        size: None,
        parent: Some(plan.named()?.clone()),
        block_bytes: None,
        is_read_only: false,
        ..plan.clone()
    };
    // All of the chain is as it should be, and nobody has the image open to write.
    let disk = open(files.as_ref(), &DiskPlan { is_read_only: true, ..plan.clone() }, seeds)?;
    if disk.layers.len() >= LAYERS_MAX {
        return Err(plan.error(DiskFault::NoLayerMore { max: LAYERS_MAX }));
    }
    drop(disk);
    create(files, &of_child, seeds)?;
    // A child that does not open would take the disk out of service.
    match open(files.as_ref(), &DiskPlan { is_read_only: true, ..of_child.clone() }, seeds) {
        Ok(_) => Ok(of_child),
        Err(error) => {
            let _ = files.remove(of_child.named()?);
            Err(error)
        }
    }
}
