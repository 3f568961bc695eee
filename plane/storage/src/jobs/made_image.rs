//! The image that a job makes, until it has its name: made anew, or left by a job before.

use std::sync::Arc;

use suimon_ports::{FileUse, StoreFiles};
use suimon_vhdx::Guid;

use crate::images::{DiskError, DiskPlan, Draft, Identity, Making, OpenLayer, Seeds, write_image};

/// The image that is written to.
pub(super) struct Made {
    pub(super) draft: Draft,
    pub(super) image: OpenLayer,
    /// What lies before this is in it.
    pub(super) at: u64,
}

impl Made {
    /// One in which nothing is yet.
    pub(super) fn new(
        files: &Arc<dyn StoreFiles>,
        plan: &DiskPlan,
        making: &Making,
        seeds: &mut Seeds<'_>,
    ) -> Result<Self, DiskError> {
        let draft = Draft::new(files, plan.named()?, plan.unit())?;
        let written = write_image(draft.file()?.as_image_file(), making, seeds);
        written.map_err(|error| DiskError::new(draft.name(), error).or_full())?;
        let image = open_draft(&draft, plan, content_of(making.identity), seeds)?;
        Ok(Self { draft, image, at: 0 })
    }
}

/// The image that a job before has left, with what lies before `at`; `None` if there is nothing
/// that can be gone on with. It has `size` bytes.
pub(super) fn reopened(
    files: &Arc<dyn StoreFiles>,
    plan: &DiskPlan,
    (at, size): (u64, u64),
    content: Option<Guid>,
    seeds: &mut Seeds<'_>,
) -> Result<Option<Made>, DiskError> {
    if at == 0 {
        return Ok(None);
    }
    let Some(draft) = Draft::reopen(files, plan.named()?, plan.unit())? else { return Ok(None) };
    match open_draft(&draft, plan, content, seeds) {
        Ok(image) if image.shape().size == size && at <= size => {
            Ok(Some(Made { draft, image, at }))
        }
        // The draft is removed with this, and made anew.
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Opens the image that is in the draft.
fn open_draft(
    draft: &Draft,
    plan: &DiskPlan,
    content: Option<Guid>,
    seeds: &mut Seeds<'_>,
) -> Result<OpenLayer, DiskError> {
    let options = plan.layer_options(FileUse::Write);
    OpenLayer::on(Arc::clone(draft.file()?), draft.name(), options, content, seeds)
}

pub(super) const fn content_of(identity: Identity) -> Option<Guid> {
    match identity {
        Identity::Vhdx { content, .. } => Some(content),
        _ => None,
    }
}
