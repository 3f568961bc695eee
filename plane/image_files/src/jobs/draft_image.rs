//! Image that a job writes under a temporary name until it is complete. It is new or was begun by
//! an earlier job.

use std::sync::Arc;

use suimon_ports::{FileLockMode, StoreFiles};
use suimon_vhdx::Guid;

use crate::{
    DiskError, DiskPlan, HostInputs, Identity, IncompleteImage, NewImageSpec, OpenLayer,
    write_image,
};

/// Incomplete image that a job writes to.
pub(super) struct DraftImage {
    pub(super) draft: IncompleteImage,
    pub(super) image: OpenLayer,
    /// Number of bytes from the beginning of the disk that the image contains already.
    pub(super) copied_bytes: u64,
}

impl DraftImage {
    /// Creates and opens a new incomplete image.
    pub(super) fn new(
        files: &Arc<dyn StoreFiles>,
        plan: &DiskPlan,
        making: &NewImageSpec,
        seeds: &mut HostInputs<'_>,
    ) -> Result<Self, DiskError> {
        let draft = IncompleteImage::new(files, plan.file_name()?, plan.io_alignment())?;
        let written = write_image(draft.file()?.as_image_file(), making, seeds);
        written.map_err(|error| DiskError::new(draft.name(), error).normalize_store_full())?;
        let image = open_draft(&draft, plan, content_guid(making.identity), seeds)?;
        Ok(Self { draft, image, copied_bytes: 0 })
    }
}

/// Reopens the incomplete image of an earlier job, which contains the first `resume_at` bytes of a
/// disk of `size` bytes. Returns `None` if the job must start from the beginning, because there is
/// none or it is damaged.
pub(super) fn reopen(
    files: &Arc<dyn StoreFiles>,
    plan: &DiskPlan,
    (resume_at, size): (u64, u64),
    content: Option<Guid>,
    seeds: &mut HostInputs<'_>,
) -> Result<Option<DraftImage>, DiskError> {
    if resume_at == 0 {
        return Ok(None);
    }
    let Some(draft) = IncompleteImage::reopen(files, plan.file_name()?, plan.io_alignment())?
    else {
        return Ok(None);
    };
    match open_draft(&draft, plan, content, seeds) {
        Ok(image) if image.geometry().size_bytes == size && resume_at <= size => {
            Ok(Some(DraftImage { draft, image, copied_bytes: resume_at }))
        }
        // Dropping the incomplete image removes it; a new one is created.
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Opens the incomplete file as an image, for writing.
fn open_draft(
    draft: &IncompleteImage,
    plan: &DiskPlan,
    content: Option<Guid>,
    seeds: &mut HostInputs<'_>,
) -> Result<OpenLayer, DiskError> {
    let options = plan.layer_options(FileLockMode::Write);
    OpenLayer::from_file(Arc::clone(draft.file()?), draft.name(), options, content, seeds)
}

pub(super) const fn content_guid(identity: Identity) -> Option<Guid> {
    match identity {
        Identity::Vhdx { content, .. } => Some(content),
        _ => None,
    }
}
