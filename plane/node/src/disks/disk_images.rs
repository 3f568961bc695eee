//! Images of disks at a change: which disks are new, which image the change creates, and which
//! kinds the images have.
//!
//! A configuration need not contain the kind of an image: an existing VHD or VHDX keeps its kind.
//! The kinds of the former and the new image are therefore taken from the images.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use suimon_contract::{
    ApiError, DiskKind, ErrorCode, FieldChange, Name, Plan, PlanAction, PlanStep, ResourceKind,
};
use suimon_image_files::inspect;
use suimon_ports::StoreFiles;

use super::Disks;
use super::missing_image::{missing_image_error, unknown_size_error};
use super::required::{RequiredDisk, RequiredDisks, contract_kind, disk_format};

/// Keys of a plan's step after which `kind` is inserted.
const BEFORE_KIND: [&str; 3] = ["store", "file", "format"];

/// Consequence of a change that closes a device that its VM has not started.
const NOT_RECONNECTED: &str = "the VM is paused or has not started the disk's device, and QEMU does \
                               not reconnect a device in this state: after the change, the VM has no \
                               access to the disk until it is stopped and started";

/// Time limit for all queries of images for one plan.
pub(super) const PLAN_QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// Images of disks before a change, and the image that the change creates on request.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiskImages {
    /// Disks that have had no image yet.
    pub(crate) new_disks: BTreeSet<Name>,
    /// Disk whose missing image the change creates.
    pub(crate) disk_of_created_image: Option<Name>,
    /// True if that disk has failed and is therefore opened again, even if its configuration does
    /// not change.
    pub(crate) is_created_disk_reopened: bool,
    /// True if a VM is connected to that disk and has not started the device.
    pub(crate) is_vm_of_created_disk_stopped: bool,
}

/// Image files that disks had before a change, by path.
pub(super) struct EarlierImages<'c> {
    images: &'c DiskImages,
    before: &'c RequiredDisks,
    /// Disks with an image, by its path. At most two disks each: whether another disk than a given
    /// one has the file needs no more.
    disks: BTreeMap<PathBuf, (&'c Name, Option<&'c Name>)>,
}

impl EarlierImages<'_> {
    /// Returns whether a disk that the change opens counts as new; `None` if the change does not
    /// alter that.
    pub(super) fn is_new(&self, name: &Name, required: &RequiredDisk) -> Option<bool> {
        if self.images.disk_of_created_image.as_ref() == Some(name) {
            return Some(true);
        }
        // A renamed disk, or one that takes over the file of another.
        let of_other = |(first, second): &(&Name, Option<&Name>)| {
            *first != name || second.is_some_and(|second| second != name)
        };
        if self.disks.get(&required.image_path()).is_some_and(of_other) {
            return Some(false);
        }
        (!self.before.contains_key(name)).then_some(true)
    }
}

impl DiskImages {
    /// Returns the image files that the disks `before` a change have.
    pub(super) fn earlier_images<'c>(&'c self, before: &'c RequiredDisks) -> EarlierImages<'c> {
        let mut disks: BTreeMap<PathBuf, (&Name, Option<&Name>)> = BTreeMap::new();
        for (name, disk) in before.iter().filter(|(name, _)| !self.new_disks.contains(*name)) {
            let (_, second) = disks.entry(disk.image_path()).or_insert((name, None));
            second.get_or_insert(name);
        }
        EarlierImages { images: self, before, disks }
    }

    /// Returns true if the change opens the images of a disk.
    pub(super) fn opens(
        &self,
        name: &Name,
        required: &RequiredDisk,
        before: &RequiredDisks,
    ) -> bool {
        before.get(name).is_none_or(|old| self.is_reopened(name) || !old.can_change_live(required))
    }

    pub(super) fn is_reopened(&self, name: &Name) -> bool {
        self.is_created_disk_reopened && self.disk_of_created_image.as_ref() == Some(name)
    }

    /// Adds to the disk's step in `plan` that its missing image file is created on request.
    pub(crate) fn add_creation_note(
        &self,
        before: &RequiredDisks,
        after: &RequiredDisks,
        plan: &mut Plan,
    ) {
        let Some(name) = &self.disk_of_created_image else { return };
        let (Some(old), Some(required)) = (before.get(name), after.get(name)) else { return };
        if !self.is_created_disk_reopened && old.image_path() == required.image_path() {
            return;
        }
        let resource = format!("{}/{name}", ResourceKind::Disk.noun());
        let mut note =
            format!("creates {} if the file is missing", required.new_image_description());
        if self.is_vm_of_created_disk_stopped {
            note = format!("{note}; {NOT_RECONNECTED}");
        }
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

/// Queries of images for one plan, with a time limit for all.
struct PlanQueries<'d> {
    disks: &'d Disks,
    until: Instant,
}

/// Returns the time until which stores are queried for a plan that begins now.
pub(crate) fn plan_deadline() -> Instant {
    Instant::now() + PLAN_QUERY_TIMEOUT
}

impl PlanQueries<'_> {
    fn query<T: Send + 'static>(
        &self,
        store: &Path,
        query: impl FnOnce(&dyn StoreFiles) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let remaining = self.until.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            let limit = PLAN_QUERY_TIMEOUT.as_secs();
            let text = format!("stores have not responded within {limit} s; check their devices");
            return Err(ApiError::new(ErrorCode::HostError, text));
        }
        self.disks.query_store_within(remaining, store, query)
    }

    /// Returns the kind that the image of a disk will have: the configured one, that of the
    /// existing file, or that of a new file.
    fn kind_after_change(&self, disk: &RequiredDisk) -> Result<DiskKind, String> {
        let new = disk.config.kind_of_new_file();
        if disk.config.required_kind().is_some() {
            return Ok(new);
        }
        let Some(file) = disk.plan().file else { return Ok(new) };
        let format = disk_format(disk.config.format);
        let kind = self.query(&disk.store.path, move |files| {
            if files.status(&file).is_err_and(|error| error.is_missing()) {
                return Ok(None);
            }
            inspect::kind(files, &file, format).map_err(|error| error.to_string())
        });
        let kind = kind.map_err(|error| error.to_string())??;
        Ok(kind.map_or(new, contract_kind))
    }

    /// Returns true if the image file of a disk is missing. A store that cannot be queried counts
    /// as one with the file.
    fn is_missing(&self, disk: &RequiredDisk) -> bool {
        let plan = disk.plan();
        if plan.file.is_none() {
            return false;
        }
        let exists = move |files: &dyn StoreFiles| suimon_image_files::exists(files, &plan);
        matches!(self.query(&disk.store.path, exists), Ok(Ok(false)))
    }
}

impl Disks {
    /// Adds the changes of kinds that result from other images to the steps of disks. Blocks until
    /// `until` if stores do not respond.
    pub(crate) fn add_kind_changes(
        &self,
        (from, to): (&RequiredDisks, &RequiredDisks),
        plan: &mut Plan,
        until: Instant,
    ) {
        let queries = PlanQueries { disks: self, until };
        for (name, after) in to {
            let is_other = |before: &&RequiredDisk| before.image_path() != after.image_path();
            let Some(before) = from.get(name).filter(is_other) else { continue };
            let label = format!("disk/{name}");
            let Some(step) = plan.steps.iter_mut().find(|step| step.resource == label) else {
                continue;
            };
            let former = self.kind_in_service(name).unwrap_or(before.config.kind_of_new_file());
            match queries.kind_after_change(after) {
                Ok(kind) => set_kinds(step, former, kind),
                Err(error) => {
                    let unknown = format!("the kind of the image is unknown: {error}");
                    step.note.get_or_insert(unknown);
                }
            }
        }
    }

    /// Returns an error for each disk whose missing image file would fail the change: one that has
    /// had an image, or a new one without a size. Blocks until `until` if stores do not respond.
    pub(crate) fn check_images_exist(
        &self,
        (from, to): (&RequiredDisks, &RequiredDisks),
        images: &DiskImages,
        until: Instant,
    ) -> Vec<ApiError> {
        let queries = PlanQueries { disks: self, until };
        let earlier = images.earlier_images(from);
        let mut errors = Vec::new();
        for (name, required) in to.iter().filter(|(name, disk)| images.opens(name, disk, from)) {
            let is_new = earlier.is_new(name, required).unwrap_or(images.new_disks.contains(name));
            let label = format!("disk/{name}");
            let error = match is_new {
                true => unknown_size_error(&label, required),
                false => Some(missing_image_error(&label, required)),
            };
            errors.extend(error.filter(|_| queries.is_missing(required)));
        }
        errors
    }

    /// Returns the kind of the image of a disk in service; `None` if it is not in service, or raw.
    fn kind_in_service(&self, name: &Name) -> Option<DiskKind> {
        let kind = self.find(name)?.lock().open.as_ref().and_then(|open| open.kind);
        kind.map(contract_kind)
    }
}

/// Replaces the change of `kind` in a step of a plan. Removes it if `from` equals `to`.
fn set_kinds(step: &mut PlanStep, from: DiskKind, to: DiskKind) {
    step.changes.retain(|change| change.field != "kind");
    if from == to {
        return;
    }
    let value = |kind: DiskKind| serde_json::to_value(kind).ok();
    let change =
        FieldChange { field: "kind".to_owned(), old_value: value(from), new_value: value(to) };
    let precedes = |change: &FieldChange| BEFORE_KIND.contains(&change.field.as_str());
    let index = step.changes.iter().rposition(precedes).map_or(0, |last| last + 1);
    step.changes.insert(index, change);
}
