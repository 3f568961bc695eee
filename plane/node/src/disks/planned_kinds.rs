//! Kinds of images in plans of changes.
//!
//! A configuration need not contain the kind of an image: an existing VHD or VHDX keeps its kind. The
//! kinds of the former and the new image are therefore taken from the images.

use std::path::PathBuf;

use suimon_contract::{DiskKind, FieldChange, Name, Plan, PlanStep};
use suimon_storage::inspect;

use super::Disks;
use super::required::{RequiredDisk, RequiredDisks, contract_kind, disk_format};
use crate::transaction::clean;

/// Keys that precede `kind` in a plan.
const BEFORE_KIND: [&str; 3] = ["store", "file", "format"];

impl Disks {
    /// Adds the changes of kinds that result from other images to the steps of disks. Blocks for up
    /// to 10 s per store that does not respond.
    pub(crate) fn plan_kinds(&self, from: &RequiredDisks, to: &RequiredDisks, plan: &mut Plan) {
        for (name, after) in to {
            let Some(before) = from.get(name).filter(|before| path(before) != path(after)) else {
                continue;
            };
            let label = format!("disk/{name}");
            let Some(step) = plan.steps.iter_mut().find(|step| step.resource == label) else {
                continue;
            };
            let former = self.kind_in_service(name).unwrap_or(before.config.kind_of_new_file());
            match self.kind_after_change(after) {
                Ok(kind) => set_kinds(step, former, kind),
                Err(error) => {
                    let unknown = format!("the kind of the image is unknown: {error}");
                    step.note.get_or_insert(unknown);
                }
            }
        }
    }

    /// Returns the kind of the image of a disk in service; `None` if it is not in service, or raw.
    fn kind_in_service(&self, name: &Name) -> Option<DiskKind> {
        let kind = self.find(name)?.lock().open.as_ref().and_then(|open| open.kind);
        kind.map(contract_kind)
    }

    /// Returns the kind that the image of a disk will have: the configured one, that of the existing
    /// file, or that of a new file.
    fn kind_after_change(&self, disk: &RequiredDisk) -> Result<DiskKind, String> {
        let new = disk.config.kind_of_new_file();
        if disk.config.required_kind().is_some() {
            return Ok(new);
        }
        let Some(file) = disk.plan().file else { return Ok(new) };
        let format = disk_format(disk.config.format);
        let found = self.query_store(&disk.store.path, move |files| {
            if files.status(&file).is_err_and(|error| error.is_missing()) {
                return Ok(None);
            }
            inspect::kind(files, &file, format).map_err(|error| error.to_string())
        });
        let found = found.map_err(|error| error.to_string())??;
        Ok(found.map_or(new, contract_kind))
    }
}

fn path(disk: &RequiredDisk) -> PathBuf {
    clean(&disk.config.path_in(&disk.store))
}

/// Sets the change of `kind` of a step.
fn set_kinds(step: &mut PlanStep, from: DiskKind, to: DiskKind) {
    step.changes.retain(|change| change.field != "kind");
    if from == to {
        return;
    }
    let value = |kind: DiskKind| serde_json::to_value(kind).ok();
    let change = FieldChange { field: "kind".to_owned(), from: value(from), to: value(to) };
    let precedes = |change: &FieldChange| BEFORE_KIND.contains(&change.field.as_str());
    let at = step.changes.iter().rposition(precedes).map_or(0, |last| last + 1);
    step.changes.insert(at, change);
}
