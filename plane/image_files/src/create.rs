//! Creation of a disk's image.

use std::sync::Arc;

use suimon_image::{ImageError, ImageFile};
use suimon_ports::{DiskFile, FileId, FileLockMode, FileName, StoreFault, StoreFiles};
use suimon_vhd::{
    BLOCK_SIZE_DEFAULT, CreateParameters, NewVhd, Parent, ParentLocator, SizeEncoding,
};
use suimon_vhdx::NewVhdx;

use super::error::{DiskError, DiskFault};
use super::incomplete_image::IncompleteImage;
use super::layer::{Identity, OpenLayer, OpenedImage};
use super::locate_parent::relative_path;
use super::plan::DiskPlan;
use super::{HostInputs, vhd_time};
use crate::format::{DiskFormat, DiskKind};

/// Default block size of a VHDX image according to its specification (MS-VHDX), in bytes.
const VHDX_BLOCK_DEFAULT: u64 = 32 << 20;

/// Reference to the parent that is recorded in a new image.
#[derive(Clone, Debug)]
pub(crate) enum ParentReference {
    Vhd(Parent),
    Vhdx(suimon_vhdx::ParentLocator),
}

/// Reference to a parent, and the parent's properties that determine those of a child.
#[derive(Clone, Debug)]
pub(crate) struct ParentProperties {
    pub(crate) parent_reference: ParentReference,
    size: u64,
    block_bytes: Option<u64>,
    logical_sector: u32,
}

/// Complete specification of an image to create.
pub(crate) struct NewImageSpec {
    pub(crate) format: DiskFormat,
    pub(crate) kind: DiskKind,
    pub(crate) size_bytes: u64,
    pub(crate) block_bytes: u64,
    pub(crate) logical_sector_bytes: u32,
    pub(crate) physical_sector_bytes: u32,
    pub(crate) parent_reference: Option<ParentReference>,
    /// Identifiers of the new image: those of another image with the same content, or `None` to
    /// generate new ones.
    pub(crate) identity: Identity,
}

/// Returns true if the file of a disk plan exists.
///
/// # Errors
/// The plan has no file, an object other than a regular file has the name, or the system returned
/// an error.
pub fn exists(files: &dyn StoreFiles, plan: &DiskPlan) -> Result<bool, DiskError> {
    match files.status(plan.file_name()?) {
        Ok(_) => Ok(true),
        Err(error) if error.is_missing() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Complete image of a disk that does not have its final file name yet. Dropping it removes the
/// image. After a crash, [`remove_all_incomplete`](super::sweep) removes it.
pub struct UnnamedImage {
    draft: IncompleteImage,
    plan: DiskPlan,
    /// Open parent, whose lock prevents changes of it before the image has its final name.
    _parent: Option<OpenLayer>,
}

impl UnnamedImage {
    /// Returns the identity of the image's file; `None` if the file system does not provide it.
    pub fn id(&self) -> Option<FileId> {
        self.draft.file().ok()?.properties().id
    }

    /// Returns the image's open file.
    ///
    /// # Errors
    /// Never fails before [`UnnamedImage::publish`], which consumes the image.
    pub fn file(&self) -> Result<&dyn DiskFile, DiskError> {
        Ok(self.draft.file()?.as_ref())
    }

    /// Gives the image its final file name, durably. Does not write to the file.
    ///
    /// # Errors
    /// A file of that name exists, the file cannot be flushed, or the system returned an error.
    pub fn publish(self) -> Result<(), DiskError> {
        self.draft.publish().map_err(|error| of_plan(&self.plan, error))
    }
}

/// Creates the image file of a disk according to a plan. The file gets its name only when it is
/// complete and durable. After a crash or an error there is no file of this name;
/// [`remove_all_incomplete`](super::sweep) removes an incomplete file.
///
/// # Errors
/// The plan is not possible, a file of that name exists, a directory is missing, the parent cannot
/// be opened, the store is full, or the system returned an error.
pub fn create(
    files: &Arc<dyn StoreFiles>,
    plan: &DiskPlan,
    seeds: &mut HostInputs<'_>,
) -> Result<(), DiskError> {
    create_unnamed(files, plan, seeds)?.publish()
}

/// Creates an image like [`create`], but without its final file name, which
/// [`UnnamedImage::publish`] gives it.
///
/// # Errors
/// As for [`create`].
pub fn create_unnamed(
    files: &Arc<dyn StoreFiles>,
    plan: &DiskPlan,
    seeds: &mut HostInputs<'_>,
) -> Result<UnnamedImage, DiskError> {
    plan.check()?;
    let name = plan.file_name()?;
    if exists(files.as_ref(), plan)? {
        return Err(plan.error(StoreFault::Exists));
    }
    // The parent remains open, so that it cannot be changed during the creation.
    let parent = open_parent(files.as_ref(), plan, seeds)?;
    let of_parent = match &parent {
        Some(parent) => Some(parent_properties(files.as_ref(), parent, name)?),
        None => None,
    };
    let making = new_image_spec(plan, of_parent)?;
    check_free_space(files.as_ref(), &making).map_err(|fault| plan.error(fault))?;
    let draft = IncompleteImage::new(files, name, plan.io_alignment())
        .and_then(|draft| make(files.as_ref(), &draft, &making, seeds).map(|()| draft))
        .map_err(|error| of_plan(plan, error))?;
    Ok(UnnamedImage { draft, plan: plan.clone(), _parent: parent })
}

/// Converts an error about the incomplete file to one about the file of the plan.
fn of_plan(plan: &DiskPlan, error: DiskError) -> DiskError {
    if error.is_missing() {
        let allowed = "a name in an existing directory; create the directory";
        return plan.invalid_value_error("file", &plan.label(), allowed);
    }
    DiskError { file: plan.label(), ..error }.normalize_store_full()
}

/// Rejects a fixed disk that is larger than the free space. Reserving more would fill the store
/// temporarily and affect other disks.
pub(crate) fn check_free_space(
    files: &dyn StoreFiles,
    making: &NewImageSpec,
) -> Result<(), DiskFault> {
    if making.kind != DiskKind::Fixed {
        return Ok(());
    }
    let free_bytes = files.space().map_err(|error| error.fault)?.free_bytes;
    if free_bytes < making.size_bytes {
        return Err(DiskFault::NoSpace { required_bytes: making.size_bytes, free_bytes });
    }
    Ok(())
}

fn make(
    files: &dyn StoreFiles,
    draft: &IncompleteImage,
    making: &NewImageSpec,
    seeds: &mut HostInputs<'_>,
) -> Result<(), DiskError> {
    let failed = |error| DiskError::new(draft.name(), error);
    write_image(draft.file()?.as_image_file(), making, seeds).map_err(failed)?;
    if making.kind == DiskKind::Fixed {
        files.reserve(draft.name())?;
    }
    Ok(())
}

fn open_parent(
    files: &dyn StoreFiles,
    plan: &DiskPlan,
    seeds: &mut HostInputs<'_>,
) -> Result<Option<OpenLayer>, DiskError> {
    if plan.creation_kind() != DiskKind::Differencing {
        return Ok(None);
    }
    let Some(parent) = &plan.parent else {
        let allowed = "the name of its parent's file";
        let value = "missing".to_owned();
        return Err(plan.error(DiskFault::InvalidPlan { field: "parent", value, allowed }));
    };
    let options = plan.layer_options(FileLockMode::Read);
    match OpenLayer::open(files, parent, options, seeds) {
        Err(error) if error.is_missing() => Err(plan.error(DiskFault::ParentMissing {
            recorded_paths: Vec::new(),
            searched_files: vec![parent.clone()],
        })),
        other => other.map(Some),
    }
}

/// Returns the reference to `parent` for a child named `child`, and the parent's properties.
pub(crate) fn parent_properties(
    files: &dyn StoreFiles,
    parent: &OpenLayer,
    child: &FileName,
) -> Result<ParentProperties, DiskError> {
    let path = relative_path(child, &parent.name);
    let claim = match &parent.image {
        OpenedImage::Vhdx(image) => {
            let linkage = image.data_write_guid();
            let locator = suimon_vhdx::ParentLocator::new(linkage).with_relative_path(&path);
            ParentReference::Vhdx(locator)
        }
        OpenedImage::Vhd(image) => ParentReference::Vhd(Parent {
            unique_id: image.footer().unique_id,
            modified_s_since_2000: parent.modified_vhd_time(files)?,
            name: parent.name.file_name().to_owned(),
            locators: vec![ParentLocator::WindowsRelative(path)],
        }),
        OpenedImage::Raw(_) => {
            let allowed = "an image of format vhd or vhdx";
            let value = "raw".to_owned();
            let fault = DiskFault::InvalidPlan { field: "parent", value, allowed };
            return Err(DiskError::new(&parent.name, fault));
        }
    };
    let shape = parent.geometry();
    Ok(ParentProperties {
        parent_reference: claim,
        size: shape.size_bytes,
        block_bytes: parent.block_bytes(),
        logical_sector: shape.logical_sector_bytes,
    })
}

/// Determines the properties of a new image that the plan leaves open. Fails if the plan
/// contradicts the parent.
pub(crate) fn new_image_spec(
    plan: &DiskPlan,
    parent: Option<ParentProperties>,
) -> Result<NewImageSpec, DiskError> {
    let refuse = |field, value: String, allowed| {
        Err(plan.error(DiskFault::InvalidPlan { field, value, allowed }))
    };
    let of_parent = parent.as_ref().map(|parent| parent.size);
    let Some(size) = plan.size_bytes.or(of_parent) else {
        return refuse("size", "missing".to_owned(), "the size of the disk to be created");
    };
    plan.check_size(size)?;
    if let Some(parent) = &parent {
        if parent.logical_sector != plan.logical_sector_bytes {
            return Err(plan.error(DiskFault::PlanMismatch {
                field: "logical_sector",
                configured: plan.logical_sector_bytes.to_string(),
                found: format!("{} in the parent", parent.logical_sector),
            }));
        }
        if size < parent.size || (plan.format == DiskFormat::Vhd && size != parent.size) {
            let allowed = "the size of the parent, or with format vhdx a larger one";
            return refuse("size", size.to_string(), allowed);
        }
    }
    let usual = match plan.format {
        DiskFormat::Vhdx => VHDX_BLOCK_DEFAULT,
        _ => BLOCK_SIZE_DEFAULT.into(),
    };
    let of_parent = parent.as_ref().and_then(|parent| parent.block_bytes);
    Ok(NewImageSpec {
        format: plan.format,
        kind: plan.creation_kind(),
        size_bytes: size,
        block_bytes: plan.block_bytes.or(of_parent).unwrap_or(usual),
        logical_sector_bytes: plan.logical_sector_bytes,
        physical_sector_bytes: plan.physical_sector_bytes,
        parent_reference: parent.map(|parent| parent.parent_reference),
        identity: Identity::None,
    })
}

/// Writes a new image to an empty file, and flushes the file.
pub(crate) fn write_image(
    file: &dyn ImageFile,
    making: &NewImageSpec,
    seeds: &mut HostInputs<'_>,
) -> Result<(), ImageError> {
    match (making.format, &making.parent_reference) {
        (DiskFormat::Raw | DiskFormat::PassThrough, _) => file
            .set_len(making.size_bytes)
            .and_then(|()| file.flush())
            .map_err(|error| ImageError::new("file", 0, error)),
        (DiskFormat::Vhd, claim) => {
            let block_size = u32::try_from(making.block_bytes).unwrap_or(u32::MAX);
            let disk = match (making.kind, claim) {
                (_, Some(ParentReference::Vhd(parent))) => {
                    CreateParameters::Differencing { block_size, parent: parent.clone() }
                }
                (DiskKind::Fixed, _) => CreateParameters::Fixed,
                _ => CreateParameters::Dynamic { block_size },
            };
            let image = NewVhd {
                disk,
                size: making.size_bytes,
                size_encoding: SizeEncoding::Exact,
                unique_id: match making.identity {
                    Identity::Vhd(vhd_identity) => vhd_identity,
                    _ => (seeds.random)(),
                },
                created_s_since_2000: vhd_time(seeds.now_unix_s),
            };
            image.create(file).map(|_| ())
        }
        (DiskFormat::Vhdx, claim) => {
            let parent = match claim {
                Some(ParentReference::Vhdx(locator)) => Some(locator.clone()),
                _ => None,
            };
            let (disk_id, data_write) = match making.identity {
                Identity::Vhdx { disk, content } => (disk, content),
                _ => (seeds.guid(), seeds.guid()),
            };
            let image = NewVhdx {
                size: making.size_bytes,
                block_bytes: making.block_bytes,
                logical_sector_bytes: making.logical_sector_bytes,
                physical_sector_bytes: making.physical_sector_bytes,
                is_fixed: making.kind == DiskKind::Fixed,
                parent,
                file_write: seeds.guid(),
                data_write,
                disk_id,
            };
            image.create(file)
        }
    }
}
