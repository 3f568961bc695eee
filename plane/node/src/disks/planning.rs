//! Steps of a change that concern disks, from the configurations before and after it.

use std::sync::Arc;

use suimon_contract::{HostConfig, Name};

use super::Disks;
use super::disk_images::DiskImages;
use super::entry::DiskEntry;
use super::required::RequiredDisks;
use super::steps::DiskStep;
use super::work::has_stopped_vm;
use crate::transaction::AcquiredResources;

/// Adds the resources that the transition from the first to the second set of disks acquires.
pub(crate) fn add_disk_resources(
    acquired: &mut AcquiredResources,
    before: &RequiredDisks,
    after: &RequiredDisks,
) {
    for (name, required) in after {
        match before.get(name) {
            Some(old) if old == required => continue,
            Some(old) if old.can_change_live(required) => {}
            _ => acquired.add_exclusive(required.exclusive_resources()),
        }
        acquired.add_shared_sockets(required.nbd_socket());
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
            (state.retry.current_failure.is_some() || state.opening.is_some())
                && state.job.is_none()
        };
        let of_created = created.as_ref().and_then(|name| self.find(name));
        let is_reopened = of_created.as_ref().is_some_and(has_failed);
        let is_stopped = of_created.is_some_and(|entry| has_stopped_vm(&entry.lock()));
        DiskImages {
            new_disks: new,
            disk_of_created_image: created,
            is_created_disk_reopened: is_reopened,
            is_vm_of_created_disk_stopped: is_stopped,
        }
    }
}

/// Returns the steps that change the disks of one configuration to those of another. `before` and
/// `after` are their disks. Disks that are removed and hold no acquired resource are closed at the
/// end of the change.
pub(crate) fn disk_steps(
    (from, before): (&HostConfig, &RequiredDisks),
    (to, after): (&HostConfig, &RequiredDisks),
    acquired: &AcquiredResources,
    images: &DiskImages,
) -> Vec<DiskStep> {
    let mut steps = Vec::new();
    let has_limits = (&from.stores, &from.qos_policies, &from.disks)
        != (&to.stores, &to.qos_policies, &to.disks);
    if has_limits {
        steps.push(DiskStep::SetLimits(Box::new(to.clone())));
    }
    let earlier = images.earlier_images(before);
    for (name, required) in after {
        match before.get(name) {
            Some(old) if old == required && !images.is_reopened(name) => continue,
            Some(old) if !images.opens(name, required, before) => {
                if old.is_nbd_acquired(acquired) {
                    steps.push(DiskStep::RemoveExports(name.clone(), required.clone()));
                }
                steps.push(DiskStep::Change(name.clone(), required.clone()));
                continue;
            }
            Some(_) => steps.push(DiskStep::Close(name.clone())),
            None => {}
        }
        let is_new = earlier.is_new(name, required);
        let (name, required) = (name.clone(), required.clone());
        steps.push(DiskStep::Open { name, required, is_new });
    }
    let removed = before.iter().filter(|(name, _)| !after.contains_key(*name));
    let conflicting = removed.filter(|(_, required)| required.uses_any(acquired));
    steps.extend(conflicting.map(|(name, _)| DiskStep::Close(name.clone())));
    steps
}
