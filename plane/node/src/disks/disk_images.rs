//! Images of disks at a change: which disks are new, and which image the change creates.

use std::collections::BTreeSet;
use std::path::PathBuf;

use suimon_contract::{Kind, Name, Plan, PlanAction, PlanStep};

use super::required::{RequiredDisk, RequiredDisks};
use crate::transaction::clean;

/// Images of disks before a change, and the image that the change creates on request.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiskImages {
    /// Disks that have had no image yet.
    pub(crate) new: BTreeSet<Name>,
    /// Disk whose missing image the change creates.
    pub(crate) created: Option<Name>,
    /// True if that disk has failed and is therefore opened again, even if its configuration does
    /// not change.
    pub(crate) is_reopened: bool,
}

impl DiskImages {
    /// Returns whether a disk that the change opens is new; `None`: as before the change.
    pub(super) fn is_new(
        &self,
        name: &Name,
        wanted: &RequiredDisk,
        before: &RequiredDisks,
    ) -> Option<bool> {
        if self.created.as_ref() == Some(name) {
            return Some(true);
        }
        // A renamed disk, or one that takes over the file of another.
        let file = image_path(wanted);
        let is_image_of = |(other, of): (&Name, &RequiredDisk)| {
            other != name && !self.new.contains(other) && image_path(of) == file
        };
        if before.iter().any(is_image_of) {
            return Some(false);
        }
        (!before.contains_key(name)).then_some(true)
    }

    pub(super) fn is_reopened(&self, name: &Name) -> bool {
        self.is_reopened && self.created.as_ref() == Some(name)
    }

    /// Adds to a plan that an image is created on request.
    pub(crate) fn note(&self, before: &RequiredDisks, after: &RequiredDisks, plan: &mut Plan) {
        let Some(name) = &self.created else { return };
        let (Some(old), Some(wanted)) = (before.get(name), after.get(name)) else { return };
        if !self.is_reopened && image_path(old) == image_path(wanted) {
            return;
        }
        let resource = format!("{}/{name}", Kind::Disk.word());
        let path = image_path(wanted);
        let note = format!("creates the image file {} if it is missing", path.display());
        match plan.steps.iter_mut().find(|step| step.resource == resource) {
            Some(step) => {
                step.action = PlanAction::Replace;
                step.note = Some(note);
            }
            None => plan.steps.push(PlanStep {
                action: PlanAction::Replace,
                resource,
                changes: Vec::new(),
                note: Some(note),
            }),
        }
    }
}

fn image_path(disk: &RequiredDisk) -> PathBuf {
    clean(&disk.config.path_in(&disk.store))
}
