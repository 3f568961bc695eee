//! Extension of a disk, and creation of a child.

use std::sync::Arc;

use suimon_image::ImageError;
use suimon_ports::{FileLockMode, FileName, StoreFiles};
use suimon_vhd::SizeSource;

use crate::{
    DiskError, DiskFault, DiskFormat, DiskKind, DiskPlan, HostInputs, LAYERS_MAX, close, create,
    open,
};

/// Extends a disk to `size` bytes; new space reads as zeros. The disk must be closed: the caller
/// stops its requests, closes the disk, resizes it, and opens it again. After a crash, the disk has
/// either the old or the new size. Returns the size.
///
/// Parents and children of the disk are not changed.
///
/// # Errors
/// The size is not possible or smaller than the current one; the store has no room for a fixed disk
/// of this size; or the image is damaged, in use, or cannot be written. The size is then unchanged,
/// unless other files used the space between the check and the reservation.
pub fn resize(
    files: &dyn StoreFiles,
    plan: &DiskPlan,
    size: u64,
    seeds: &mut HostInputs<'_>,
) -> Result<u64, DiskError> {
    plan.check()?;
    plan.check_size(size)?;
    let name = plan.file_name()?;
    // Opening and closing verifies that the image is as planned, intact, and has its parents.
    let disk = open(files, plan, seeds)?;
    let (before, kind) = (disk.geometry.size_bytes, disk.kind);
    close(disk.layer_stack, &plan.label())?;
    if size < before {
        let allowed = "at least the present size; disks cannot shrink";
        return Err(plan.invalid_value_error("size", &size, allowed));
    }
    if size == before {
        return Ok(size);
    }
    if kind == DiskKind::Fixed {
        let (needed, free) = (size - before, files.space()?.free_bytes);
        if free < needed {
            return Err(plan.error(DiskFault::NoSpace { required_bytes: needed, free_bytes: free }));
        }
    }
    let file = files.open(name, FileLockMode::Write, plan.io_alignment())?;
    let resized = match plan.format {
        DiskFormat::Raw | DiskFormat::PassThrough => file
            .set_len(size)
            .and_then(|()| file.flush())
            .map(|()| size)
            .map_err(|error| ImageError::new("file", 0, error)),
        DiskFormat::Vhd => suimon_vhd::resize(file.as_image_file(), size, SizeSource::Creator),
        DiskFormat::Vhdx => {
            suimon_vhdx::resize(file.as_image_file(), size, &seeds.write_guids()).map(|()| size)
        }
    };
    let resized = resized.map_err(|error| plan.error(error).normalize_store_full())?;
    if kind == DiskKind::Fixed {
        files.reserve(name)?;
    }
    Ok(resized)
}

/// Creates a child of a disk's image, with which the disk continues. The image becomes the parent
/// and must not be written any more; its lock ensures this while the child is open. The disk must
/// be closed. Returns the plan of the child.
///
/// # Errors
/// The format has no children, a file of that name exists, the disk has the largest number of
/// layers, or an error of [`create`]. Then there is no child.
pub fn snapshot(
    files: &Arc<dyn StoreFiles>,
    plan: &DiskPlan,
    child: FileName,
    seeds: &mut HostInputs<'_>,
) -> Result<DiskPlan, DiskError> {
    if !matches!(plan.format, DiskFormat::Vhd | DiskFormat::Vhdx) {
        let allowed = "vhd or vhdx; convert the disk first";
        return Err(plan.invalid_value_error("format", &plan.format.as_str(), allowed));
    }
    let of_child = DiskPlan {
        kind: Some(DiskKind::Differencing),
        file: Some(child),
        size_bytes: None,
        parent: Some(plan.file_name()?.clone()),
        block_bytes: None,
        is_read_only: false,
        ..plan.clone()
    };
    // The whole chain of parents is intact, and the image is not open for writing.
    let disk = open(files.as_ref(), &DiskPlan { is_read_only: true, ..plan.clone() }, seeds)?;
    if disk.layer_files.len() >= LAYERS_MAX {
        return Err(plan.error(DiskFault::LayerLimitReached { max: LAYERS_MAX }));
    }
    drop(disk);
    create(files, &of_child, seeds)?;
    // The disk would be out of service if the child could not be opened.
    match open(files.as_ref(), &DiskPlan { is_read_only: true, ..of_child.clone() }, seeds) {
        Ok(_) => Ok(of_child),
        Err(error) => {
            let _ = files.remove(of_child.file_name()?);
            Err(error)
        }
    }
}
