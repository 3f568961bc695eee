//! Steps of a change that concern disks, from the configurations before and after it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use suimon_contract::{HostConfig, Kind, Name, Plan, PlanAction, PlanStep};

use super::Disks;
use super::entry::DiskEntry;
use super::required::{RequiredDisk, RequiredDisks};
use super::steps::DiskStep;
use crate::transaction::{Acquired, clean};

/// Adds the resources that the transition from the first to the second set of disks acquires.
pub(crate) fn acquire_disks(
    acquired: &mut Acquired,
    before: &RequiredDisks,
    after: &RequiredDisks,
) {
    for (name, wanted) in after {
        match before.get(name) {
            Some(old) if old == wanted => continue,
            Some(old) if old.can_change_live(wanted) => {}
            _ => acquired.add_exclusive(wanted.claims()),
        }
        acquired.add_shared_sockets(wanted.nbd_socket());
    }
}

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
    fn is_new(&self, name: &Name, wanted: &RequiredDisk, before: &RequiredDisks) -> Option<bool> {
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

    fn is_reopened(&self, name: &Name) -> bool {
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

impl Disks {
    /// Returns the images of disks before a change that creates the missing image of the disk
    /// `created`.
    pub(crate) fn images_before(&self, created: Option<Name>) -> DiskImages {
        let new = self.all().into_iter().filter(|entry| entry.is_new());
        let new = new.map(|entry| entry.name.clone()).collect();
        let has_failed = |entry: &Arc<DiskEntry>| {
            let state = entry.lock();
            state.failing.now.is_some() && state.open.is_none() && state.work.is_none()
        };
        let of_created = created.as_ref().and_then(|name| self.find(name));
        let is_reopened = of_created.as_ref().is_some_and(has_failed);
        DiskImages { new, created, is_reopened }
    }
}

fn image_path(disk: &RequiredDisk) -> PathBuf {
    clean(&disk.config.path_in(&disk.store))
}

/// Returns the steps that change the disks of one configuration to those of another. `before` and
/// `after` are their disks. Disks that are removed and hold no acquired resource are closed at the
/// end of the change.
pub(crate) fn disk_steps(
    (from, before): (&HostConfig, &RequiredDisks),
    (to, after): (&HostConfig, &RequiredDisks),
    acquired: &Acquired,
    images: &DiskImages,
) -> Vec<DiskStep> {
    let mut steps = Vec::new();
    let has_limits = (&from.stores, &from.qos_policies, &from.disks)
        != (&to.stores, &to.qos_policies, &to.disks);
    if has_limits {
        steps.push(DiskStep::Limits(Box::new(to.clone())));
    }
    for (name, wanted) in after {
        match before.get(name) {
            Some(_) if images.is_reopened(name) => steps.push(DiskStep::Close(name.clone())),
            Some(old) if old == wanted => continue,
            Some(old) if old.can_change_live(wanted) => {
                if old.is_nbd_acquired(acquired) {
                    steps.push(DiskStep::Withdraw(name.clone(), wanted.clone()));
                }
                steps.push(DiskStep::Change(name.clone(), wanted.clone()));
                continue;
            }
            Some(_) => steps.push(DiskStep::Close(name.clone())),
            None => {}
        }
        let is_new = images.is_new(name, wanted, before);
        let (name, wanted) = (name.clone(), wanted.clone());
        steps.push(DiskStep::Open { name, wanted, is_new });
    }
    let gone = before.iter().filter(|(name, _)| !after.contains_key(*name));
    let in_the_way = gone.filter(|(_, wanted)| wanted.holds_any(acquired));
    steps.extend(in_the_way.map(|(name, _)| DiskStep::Close(name.clone())));
    steps
}
