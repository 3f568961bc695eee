//! Opening of a disk with its parents.

use std::io;

use suimon_image::{DiskGeometry, LinearImage};
use suimon_ports::{FileLockMode, FileName, StoreFiles};

use super::HostInputs;
use super::error::{DiskError, DiskFault};
use super::layer::OpenLayer;
use super::locate_parent::{Candidate, candidates, recorded_paths, verify};
use super::plan::DiskPlan;
use super::redoing::start_recording;
use crate::format::{DiskFormat, DiskKind};
use crate::layer_options::LayerOptions;
use crate::layer_stack::{DiskLayer, LayerStack};

/// Largest number of layers of a disk, including its own image.
pub const LAYERS_MAX: usize = 64;

/// Largest number of layers of a disk that is opened for reading, in order to merge layers.
pub(crate) const LAYERS_READ_MAX: usize = 1024;

/// Open disk: its images, with their properties.
pub struct OpenedDisk {
    /// Images for the engine, which returns them for [`close`].
    pub layer_stack: LayerStack,
    /// Kind of the disk's own image. For a raw file or block device, the kind in the plan.
    pub kind: DiskKind,
    /// Size and sector sizes that a guest sees.
    pub geometry: DiskGeometry,
    /// Bytes that the disk's own file occupies on the store; the size of a block device.
    pub allocated_bytes: u64,
    /// Files of the disk: its own, its parent's, and so on. Empty for a block device.
    pub layer_files: Vec<FileName>,
    /// Error because of which metadata changes are not recorded, so that each write to newly
    /// allocated space waits for a commit; `None` if they are recorded or need no record.
    pub redo_record_error: Option<io::Error>,
}

/// Opens a disk according to a plan, and locks its files. Creates no file: a missing file is an
/// error ([`DiskError::is_missing`]). The size of the plan is not compared; the caller resizes the
/// disk if necessary.
///
/// An image that was not closed is repaired as its format requires. Opening a VHDX image for
/// writing changes its content identifier, as the specification requires, so that its children do
/// not accept it any more.
///
/// # Errors
/// The plan is not possible or contradicts the image; a file is missing, in use, or damaged; a
/// parent is missing, another disk, or was changed. No file remains open.
pub fn open(
    files: &dyn StoreFiles,
    plan: &DiskPlan,
    seeds: &mut HostInputs<'_>,
) -> Result<OpenedDisk, DiskError> {
    open_up_to(files, plan, LAYERS_MAX, seeds)
}

/// Opens a disk like [`open`], with the given limit on the number of layers.
pub(crate) fn open_up_to(
    files: &dyn StoreFiles,
    plan: &DiskPlan,
    layers_max: usize,
    seeds: &mut HostInputs<'_>,
) -> Result<OpenedDisk, DiskError> {
    plan.check()?;
    if plan.format == DiskFormat::PassThrough {
        return open_device(files, plan);
    }
    let layers = open_layers(files, plan, layers_max, seeds)?;
    let names: Vec<FileName> = layers.iter().map(|layer| layer.name.clone()).collect();
    let (Some(top_layer), Some(name)) = (layers.first(), names.first()) else {
        return Err(plan.error(suimon_ports::StoreFault::Missing));
    };
    let (shape, kind) = (top_layer.geometry(), top_layer.kind().unwrap_or(plan.creation_kind()));
    let allocated_bytes = files.status(name)?.allocated_bytes;
    let mut layers: Vec<DiskLayer> = layers.into_iter().map(OpenLayer::into_layer).collect();
    let mut unrecorded = None;
    if !plan.is_read_only {
        let parents = layers.split_off(1);
        layers = layers
            .into_iter()
            .map(|top_layer| {
                let (top_layer, failed) = start_recording(top_layer, seeds);
                unrecorded = failed;
                top_layer
            })
            .chain(parents)
            .collect();
    }
    let spec = LayerStack { layers };
    Ok(OpenedDisk {
        layer_stack: spec,
        kind,
        geometry: shape,
        allocated_bytes,
        layer_files: names,
        redo_record_error: unrecorded,
    })
}

/// Closes a disk that the engine has returned, so that its file needs no repair. `label` is its
/// name in an error.
///
/// # Errors
/// The file could not be written, or a flush had failed before. In the latter case nothing is
/// written, because metadata would refer to payload that may be lost. The image is repaired at the
/// next opening, as after a crash of the host.
pub fn close(spec: LayerStack, label: &str) -> Result<(), DiskError> {
    let Some(DiskLayer { mut image, file }) = spec.layers.into_iter().next() else { return Ok(()) };
    if let Some(error) = file.first_flush_error() {
        image.handle_flush_failure();
        drop(image);
        // Without this, reads would return data from the page cache that the device may not have.
        let _ = file.drop_page_cache();
        return Err(DiskError::new(label, DiskFault::FlushFailed { error: error.to_owned() }));
    }
    image
        .close(file.as_image_file())
        .map_err(|error| DiskError::new(label, error).normalize_store_full())
}

fn open_device(files: &dyn StoreFiles, plan: &DiskPlan) -> Result<OpenedDisk, DiskError> {
    let used = if plan.is_read_only { FileLockMode::Read } else { FileLockMode::Write };
    let file = files.open_device(used, plan.io_alignment())?;
    let len = file.properties().len;
    let shape = DiskGeometry {
        size_bytes: len - len % u64::from(plan.logical_sector_bytes),
        logical_sector_bytes: plan.logical_sector_bytes,
        physical_sector_bytes: plan.physical_sector_bytes,
        block_bytes: 0,
    };
    let image = Box::new(LinearImage::new(shape, 0, plan.is_read_only));
    let spec = LayerStack { layers: vec![DiskLayer { image, file }] };
    let kind = plan.creation_kind();
    Ok(OpenedDisk {
        layer_stack: spec,
        kind,
        geometry: shape,
        allocated_bytes: len,
        layer_files: Vec::new(),
        redo_record_error: None,
    })
}

/// Opens the disk's own image according to the plan, and its parents for reading. Returns the
/// layers, own image first. `layers_max`: maximum number of layers.
pub(crate) fn open_layers(
    files: &dyn StoreFiles,
    plan: &DiskPlan,
    layers_max: usize,
    seeds: &mut HostInputs<'_>,
) -> Result<Vec<OpenLayer>, DiskError> {
    let used = if plan.is_read_only { FileLockMode::Read } else { FileLockMode::Write };
    let options = plan.layer_options(used);
    let top_layer = OpenLayer::open(files, plan.file_name()?, options, seeds)?;
    let mut layers = vec![top_layer];
    let opened = agree(plan, &layers).and_then(|()| {
        add_parents(files, &mut layers, plan.parent.as_ref(), options, layers_max, seeds)
    });
    match opened {
        Ok(()) => Ok(layers),
        Err(error) => {
            // The image was not used. If it cannot be closed, it is repaired at the next opening.
            if let Some(top_layer) = layers.into_iter().next().filter(|_| !plan.is_read_only) {
                let _ = top_layer.close();
            }
            Err(error)
        }
    }
}

/// Checks that the image has the kind, sector size and parent that the plan states, if any.
fn agree(plan: &DiskPlan, layers: &[OpenLayer]) -> Result<(), DiskError> {
    let Some(top_layer) = layers.first() else { return Ok(()) };
    let differs = |field, planned: String, difference: String| {
        Err(plan.error(DiskFault::PlanMismatch { field, configured: planned, found: difference }))
    };
    if let (Some(planned), Some(actual)) = (plan.kind, top_layer.kind()) {
        if planned != actual {
            return differs("kind", planned.as_str().to_owned(), actual.as_str().to_owned());
        }
    }
    if let Some(parent) = plan.parent.as_ref().filter(|_| !top_layer.is_differencing()) {
        return differs("parent", parent.to_string(), "absent".to_owned());
    }
    let (planned, actual) = (plan.logical_sector_bytes, top_layer.geometry().logical_sector_bytes);
    if planned != actual {
        return differs("logical_sector", planned.to_string(), actual.to_string());
    }
    if top_layer.geometry().size_bytes == 0 {
        return differs("size", "at least one sector".to_owned(), "0".to_owned());
    }
    Ok(())
}

fn add_parents(
    files: &dyn StoreFiles,
    layers: &mut Vec<OpenLayer>,
    parent_name: Option<&FileName>,
    child_options: LayerOptions,
    layers_max: usize,
    seeds: &mut HostInputs<'_>,
) -> Result<(), DiskError> {
    let options = LayerOptions { lock_mode: FileLockMode::Read, ..child_options };
    let mut parent_name = parent_name.cloned();
    while let Some(child) = layers.last() {
        if !child.is_differencing() {
            break;
        }
        let failed = |fault| DiskError::new(&child.name, fault);
        if layers.len() == layers_max {
            return Err(failed(DiskFault::TooManyLayers { max: layers_max }));
        }
        let parent_name = parent_name.take();
        let recorded = if parent_name.is_some() { Vec::new() } else { recorded_paths(child) };
        let candidates = match parent_name {
            Some(name) => vec![Candidate { name, is_guess: false }],
            None => candidates(child),
        };
        let is_layer = |name: &FileName| layers.iter().any(|layer| layer.name == *name);
        if let Some(repeated) =
            candidates.iter().find(|candidate| !candidate.is_guess && is_layer(&candidate.name))
        {
            return Err(failed(DiskFault::ParentCycle { file: repeated.name.clone() }));
        }
        let candidates: Vec<Candidate> =
            candidates.into_iter().filter(|candidate| !is_layer(&candidate.name)).collect();
        let parent = find_parent(files, child, recorded, &candidates, options, seeds)?;
        let (of_child, of_parent) =
            (child.geometry().logical_sector_bytes, parent.geometry().logical_sector_bytes);
        if of_parent > of_child {
            return Err(failed(DiskFault::PlanMismatch {
                field: "LogicalSectorSize",
                configured: format!("{of_child} in the child"),
                found: format!("{of_parent} in its parent {}", parent.name),
            }));
        }
        layers.push(parent);
    }
    Ok(())
}

/// Opens the first of the `candidates` that is the child's parent. If there is none, returns the
/// error of the first candidate with an existing file: an unrelated image under one name does not
/// hide the parent under another name.
pub(crate) fn find_parent(
    files: &dyn StoreFiles,
    child: &OpenLayer,
    recorded: Vec<String>,
    candidates: &[Candidate],
    options: LayerOptions,
    seeds: &mut HostInputs<'_>,
) -> Result<OpenLayer, DiskError> {
    let mut first_error = None;
    for candidate in candidates {
        let opened = OpenLayer::open(files, &candidate.name, options, seeds)
            .and_then(|parent| verify(files, child, &parent).map(|()| parent));
        match opened {
            Ok(parent) => return Ok(parent),
            Err(error) if error.is_missing() => {}
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    let names = candidates.iter().map(|candidate| candidate.name.clone()).collect();
    let missing = || {
        DiskError::new(
            &child.name,
            DiskFault::ParentMissing { recorded_paths: recorded, searched_files: names },
        )
    };
    Err(first_error.unwrap_or_else(missing))
}
