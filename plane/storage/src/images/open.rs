//! Opening a disk with its parents.

use std::io;

use suimon_image::{Linear, Shape};
use suimon_ports::{FileName, FileUse, StoreFiles};

use super::Seeds;
use super::error::{DiskError, DiskFault};
use super::layer::{LayerOptions, OpenLayer};
use super::locate_parent::{Candidate, candidates, recorded_paths, verify};
use super::plan::{DiskFormat, DiskKind, DiskPlan};
use super::redoing::recorded;
use crate::disk::{DiskLayer, DiskSpec};

/// Layers that a disk may have, its own image with them.
pub const LAYERS_MAX: usize = 64;

/// Layers of a disk that is read to make it one of fewer.
pub(crate) const LAYERS_READ_MAX: usize = 1024;

/// A disk that is open.
pub struct OpenedDisk {
    /// For the engine, which gives it back for [`close`].
    pub spec: DiskSpec,
    /// Kind of the disk's own image. Of a raw file and a block device it is the planned one.
    pub kind: DiskKind,
    /// What a guest sees.
    pub shape: Shape,
    /// Bytes that the disk's own file takes of the store; all of a block device.
    pub allocated_bytes: u64,
    /// The files: its own, then the parent's, and so on. Empty for a block device.
    pub layers: Vec<FileName>,
    /// Why changes of its metadata are not kept, so that each write to new space waits for
    /// a commit.
    pub unrecorded: Option<io::Error>,
}

/// Opens a disk as a plan says, and locks its files. Nothing is made: if the disk's file is
/// not there, the error says so ([`DiskError::is_missing`]). The size in the plan is not
/// compared; whoever asked for another resizes.
///
/// An image that was not closed is repaired as its format has it. A VHDX image that is
/// opened for writing is another one for its children from then on, as the specification
/// has it.
///
/// # Errors
/// The plan is not possible, or is not what the image is; a file is missing, in use, or
/// broken; a parent is missing, another one, or was changed. Nothing stays open.
pub fn open(
    files: &dyn StoreFiles,
    plan: &DiskPlan,
    seeds: &mut Seeds<'_>,
) -> Result<OpenedDisk, DiskError> {
    open_up_to(files, plan, LAYERS_MAX, seeds)
}

/// Like [`open`], with another limit of layers.
pub(crate) fn open_up_to(
    files: &dyn StoreFiles,
    plan: &DiskPlan,
    layers_max: usize,
    seeds: &mut Seeds<'_>,
) -> Result<OpenedDisk, DiskError> {
    plan.check()?;
    if plan.format == DiskFormat::PassThrough {
        return open_device(files, plan);
    }
    let layers = open_layers(files, plan, layers_max, seeds)?;
    let names: Vec<FileName> = layers.iter().map(|layer| layer.name.clone()).collect();
    let (Some(own), Some(name)) = (layers.first(), names.first()) else {
        return Err(plan.error(suimon_ports::StoreFault::Missing));
    };
    let (shape, kind) = (own.shape(), own.kind().unwrap_or(plan.new_kind()));
    let allocated_bytes = files.status(name)?.allocated_bytes;
    let mut layers: Vec<DiskLayer> = layers.into_iter().map(OpenLayer::into_layer).collect();
    let mut unrecorded = None;
    if !plan.is_read_only {
        let parents = layers.split_off(1);
        layers = layers
            .into_iter()
            .map(|own| {
                let (own, failed) = recorded(own, seeds);
                unrecorded = failed;
                own
            })
            .chain(parents)
            .collect();
    }
    let spec = DiskSpec { layers };
    Ok(OpenedDisk { spec, kind, shape, allocated_bytes, layers: names, unrecorded })
}

/// Closes a disk that the engine has given back, so that its file needs no repair. `label`
/// names it in an error.
///
/// # Errors
/// The file could not be written. The image is as after a crash, which is as good.
pub fn close(spec: DiskSpec, label: &str) -> Result<(), DiskError> {
    let Some(DiskLayer { image, file }) = spec.layers.into_iter().next() else { return Ok(()) };
    image.close(file.as_image_file()).map_err(|error| DiskError::new(label, error).or_full())
}

fn open_device(files: &dyn StoreFiles, plan: &DiskPlan) -> Result<OpenedDisk, DiskError> {
    let used = if plan.is_read_only { FileUse::Read } else { FileUse::Write };
    let file = files.open_device(used, plan.unit())?;
    let len = file.facts().len;
    let shape = Shape {
        size: len - len % u64::from(plan.logical_sector),
        logical_sector: plan.logical_sector,
        physical_sector: plan.physical_sector,
        block: 0,
    };
    let image = Box::new(Linear::new(shape, 0, plan.is_read_only));
    let spec = DiskSpec { layers: vec![DiskLayer { image, file }] };
    let kind = plan.new_kind();
    Ok(OpenedDisk { spec, kind, shape, allocated_bytes: len, layers: Vec::new(), unrecorded: None })
}

/// Opens the disk's own image as the plan says, and its parents for reading.
pub(crate) fn open_layers(
    files: &dyn StoreFiles,
    plan: &DiskPlan,
    layers_max: usize,
    seeds: &mut Seeds<'_>,
) -> Result<Vec<OpenLayer>, DiskError> {
    let used = if plan.is_read_only { FileUse::Read } else { FileUse::Write };
    let options = plan.layer_options(used);
    let own = OpenLayer::open(files, plan.named()?, options, seeds)?;
    let mut layers = vec![own];
    let opened = agree(plan, &layers).and_then(|()| {
        add_parents(files, &mut layers, plan.parent.as_ref(), options, layers_max, seeds)
    });
    match opened {
        Ok(()) => Ok(layers),
        Err(error) => {
            // It was not used. If it cannot be closed, it is as after a crash.
            if let Some(own) = layers.into_iter().next().filter(|_| !plan.is_read_only) {
                let _ = own.close();
            }
            Err(error)
        }
    }
}

/// Whether the image is what the plan says.
fn agree(plan: &DiskPlan, layers: &[OpenLayer]) -> Result<(), DiskError> {
    let Some(own) = layers.first() else { return Ok(()) };
    let differs = |field, planned: String, found: String| {
        Err(plan.error(DiskFault::Differs { field, planned, found }))
    };
    if let (Some(planned), Some(found)) = (plan.kind, own.kind()) {
        if planned != found {
            return differs("kind", planned.word().to_owned(), found.word().to_owned());
        }
    }
    if let Some(parent) = plan.parent.as_ref().filter(|_| !own.is_differencing()) {
        return differs("parent", parent.to_string(), "absent".to_owned());
    }
    let (planned, found) = (plan.logical_sector, own.shape().logical_sector);
    if planned != found {
        return differs("logical_sector", planned.to_string(), found.to_string());
    }
    if own.shape().size == 0 {
        return differs("size", "at least a sector".to_owned(), "0".to_owned());
    }
    Ok(())
}

/// Returns the files of a disk's parents, nearest first, as far as they are found and are what their
/// children name. Nothing is written. Each file is opened for reading and closed again.
///
/// # Errors
/// The disk's own file is missing, in use, or no image.
pub fn parents(
    files: &dyn StoreFiles,
    plan: &DiskPlan,
    seeds: &mut Seeds<'_>,
) -> Result<Vec<FileName>, DiskError> {
    let seeds = &mut seeds.keeping_records();
    let options = plan.layer_options(FileUse::Read);
    let mut layers = vec![OpenLayer::open(files, plan.named()?, options, seeds)?];
    // What is missing or wrong farther up is an error of opening the disk, and not of this.
    let _ = add_parents(files, &mut layers, plan.parent.as_ref(), options, LAYERS_MAX, seeds);
    Ok(layers.into_iter().skip(1).map(|layer| layer.name).collect())
}

fn add_parents(
    files: &dyn StoreFiles,
    layers: &mut Vec<OpenLayer>,
    named: Option<&FileName>,
    own: LayerOptions,
    layers_max: usize,
    seeds: &mut Seeds<'_>,
) -> Result<(), DiskError> {
    let options = LayerOptions { used: FileUse::Read, ..own };
    let mut named = named.cloned();
    while let Some(child) = layers.last() {
        if !child.is_differencing() {
            break;
        }
        let failed = |fault| DiskError::new(&child.name, fault);
        if layers.len() == layers_max {
            return Err(failed(DiskFault::TooManyLayers { max: layers_max }));
        }
        let named = named.take();
        let recorded = if named.is_some() { Vec::new() } else { recorded_paths(child) };
        let tried = match named {
            Some(name) => vec![Candidate { name, is_guess: false }],
            None => candidates(child),
        };
        let is_layer = |name: &FileName| layers.iter().any(|layer| layer.name == *name);
        if let Some(again) = tried.iter().find(|tried| !tried.is_guess && is_layer(&tried.name)) {
            return Err(failed(DiskFault::ParentCycle { file: again.name.clone() }));
        }
        let tried: Vec<Candidate> =
            tried.into_iter().filter(|tried| !is_layer(&tried.name)).collect();
        let parent = find_parent(files, child, recorded, &tried, options, seeds)?;
        let (of_child, of_parent) = (child.shape().logical_sector, parent.shape().logical_sector);
        if of_parent > of_child {
            return Err(failed(DiskFault::Differs {
                field: "LogicalSectorSize",
                planned: format!("{of_child} in the child"),
                found: format!("{of_parent} in its parent {}", parent.name),
            }));
        }
        layers.push(parent);
    }
    Ok(())
}

/// Opens the first candidate that is the child's parent. If there is none, the error is that of
/// the first candidate whose file is there: another image at one place does not hide the parent
/// at another.
pub(crate) fn find_parent(
    files: &dyn StoreFiles,
    child: &OpenLayer,
    recorded: Vec<String>,
    tried: &[Candidate],
    options: LayerOptions,
    seeds: &mut Seeds<'_>,
) -> Result<OpenLayer, DiskError> {
    let mut first_error = None;
    for candidate in tried {
        let opened = OpenLayer::open(files, &candidate.name, options, seeds)
            .and_then(|parent| verify(files, child, &parent).map(|()| parent));
        match opened {
            Ok(parent) => return Ok(parent),
            Err(error) if error.is_missing() => {}
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    let tried = tried.iter().map(|tried| tried.name.clone()).collect();
    let missing = || DiskError::new(&child.name, DiskFault::ParentMissing { recorded, tried });
    Err(first_error.unwrap_or_else(missing))
}
