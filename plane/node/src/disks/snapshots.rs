//! Snapshots and completion of merges: the disk continues with another file, which becomes part of
//! the desired state.
//!
//! A crash leaves one of two states. The file of a snapshot is recorded as doomed until the desired
//! state refers to it; the file of a merged disk, as soon as the desired state does not. A starting
//! daemon removes recorded files that no disk uses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use suimon_contract::{
    ApiError, DiskConfig, DiskKind, ErrorCode, EventKind, HostConfig, Name, PlanAction,
    ResourceKind, SnapshotDiskRequest, StoreFile,
};
use suimon_image_files::jobs;
use suimon_image_files::{DiskPlan, LAYERS_MAX};
use suimon_ports::StateStoreError;

use super::entry::DiskEntry;
use super::opening::errors::disk_error;
use super::required::{contract_kind, file_name, required_disks, store_file};
use super::store_threads::{STORE_TIMEOUT, StoreOperationError};
use crate::change::ValidatedChange;
use crate::control::Controller;
use crate::disks::records::{
    DeletionRecord, clear_deletion_record, load_deletion_records, save_deletion_record,
};
use crate::errors::{not_found, store_error, summarize};
use crate::events::EventDraft;
use crate::operations::OperationHandle;
use crate::ports::required_ports;
use crate::state::{Intent, save_intent};
use crate::transaction::{ExclusiveResource, normalize_path};
use crate::{ChangeOptions, Edit, ResourceEdit};

/// Number of image files of a disk (its own and its parents) from which on each snapshot emits a
/// warning.
const LAYERS_WARNED: usize = 48;

/// Options of the change that sets another file for a disk. Minimums are not checked, because they
/// do not change.
const KEEP_MINIMUMS: ChangeOptions = ChangeOptions {
    forces_minimums: true,
    deletes_files: false,
    keeps_faulty_disks: false,
    creates_image: false,
    replaces_images: true,
};

/// Returns the error of a snapshot that was taken, if the disk cannot be opened with its new file.
fn taken_but_not_open(file: &StoreFile, error: ApiError) -> ApiError {
    let message = format!(
        "the snapshot was taken, and the image of the disk is {file} now, but it cannot be opened, \
         and the daemon retries: {}",
        error.message
    );
    ApiError { message, ..error }
}

impl Controller {
    /// Takes a snapshot: creates a child of a disk's image, with which the disk continues. Clients
    /// see a pause.
    pub(super) fn take_snapshot(
        &mut self,
        operation: &OperationHandle,
        disk: &Name,
        request: &SnapshotDiskRequest,
    ) -> Result<(), ApiError> {
        let work = super::DiskFileJob::Snapshot(request.clone());
        self.shared.check_disk_job(disk, &work)?;
        let entry =
            self.shared.disks.find(disk).ok_or_else(|| not_found(ResourceKind::Disk, disk))?;
        let edit = self.edit_of(&entry, |config| {
            config.parent = config.effective_file();
            config.file = Some(request.file.clone());
            config.kind = Some(DiskKind::Differencing);
        })?;
        let mut to = self.shared.check(&edit, KEEP_MINIMUMS).map_err(summarize)?;
        for step in &mut to.plan.steps {
            // Clients are not disconnected.
            step.action = PlanAction::ChangeLive;
        }
        operation.set_plan(&to.plan, 2);
        operation.report_step(0, "create the new file");
        let required = entry.lock().required.clone();
        let child = DeletionRecord { store: required.store.path, file: request.file.clone() };
        let before = required_ports(&self.shared.desired().config);
        let mut is_committed = false;
        let result = self.make_child(&entry, &to, &edit, &child, &mut is_committed);
        if !is_committed {
            if let Err(error) = &result {
                self.report_failure(&edit, error);
            }
            return result;
        }
        self.finish(to, &edit, &before);
        self.warn_of_layers(&entry);
        result.map_err(|error| taken_but_not_open(&request.file, error))
    }

    /// Emits a warning if the disk approaches the maximum number of files.
    fn warn_of_layers(&mut self, entry: &DiskEntry) {
        let layers = entry.lock().open.as_ref().map_or(0, |open| open.layer_files.len());
        if layers < LAYERS_WARNED {
            return;
        }
        let text = format!(
            "The disk has {layers} layers (its own file and its parents) of at most {LAYERS_MAX}. \
             Merge it into its parent: suimon disk merge {}.",
            entry.name
        );
        let draft = EventDraft::new(EventKind::DiskHasManyLayers, entry.label(), text);
        self.drafts.push(draft.with("layers", layers).with("layers_max", LAYERS_MAX));
    }

    fn make_child(
        &mut self,
        entry: &Arc<DiskEntry>,
        to: &ValidatedChange,
        edit: &Edit,
        child: &DeletionRecord,
        is_committed: &mut bool,
    ) -> Result<(), ApiError> {
        let plan = entry.lock().required.plan();
        let after = to.disks.get(&entry.name).cloned();
        let (Some(after), Some(name)) = (after, file_name(&child.file)) else {
            return Err(not_found(ResourceKind::Disk, &entry.name));
        };
        self.refuse_existing(entry, &after.plan())?;
        let intent = Intent { revision: to.state.revision, kind: edit.kind() };
        let noted = save_deletion_record(child).and_then(|record| {
            let intent = save_intent(&intent)?;
            self.store.commit(&[record, intent])
        });
        noted.map_err(|error| store_error(&error))?;
        // Also true while a store that does not respond may still create the file.
        let may_be_made = Arc::new(AtomicBool::new(false));
        let may_create = may_be_made.clone();
        let result = self.run_suspended(
            entry,
            move |work, files| {
                may_create.store(true, Ordering::Release);
                work.with_host_inputs(|seeds| jobs::snapshot(files, &plan, name, seeds)).map_err(
                    |error| {
                        may_create.store(false, Ordering::Release);
                        work.to_api_error(&error)
                    },
                )
            },
            |controller, _| {
                let committed = controller.commit(to, edit, vec![clear_deletion_record(child)]);
                committed.map_err(|error| store_error(&error))?;
                entry.lock().required = after;
                *is_committed = true;
                Ok(())
            },
        );
        if may_be_made.load(Ordering::Acquire) && !*is_committed {
            if let Err(error) = self.remove_if_unused(child, &self.shared.desired().config) {
                tracing::warn!(%error, "cannot delete the file of a failed snapshot yet");
            }
        } else if !*is_committed {
            self.forget_doomed(child);
        }
        result
    }

    fn refuse_existing(&self, entry: &DiskEntry, plan: &DiskPlan) -> Result<(), ApiError> {
        let files = entry.lock().open.as_ref().map(|open| open.files.clone());
        let Some(files) = files else { return Ok(()) };
        let plan = plan.clone();
        let exists = self.shared.with_store(
            entry,
            move || suimon_image_files::exists(files.as_ref(), &plan),
            drop,
        )?;
        match exists {
            Ok(false) => Ok(()),
            Ok(true) => {
                let text = "the store already has a file of this name; choose another";
                let error = ApiError::new(ErrorCode::AlreadyExists, text);
                Err(error.with_resource(entry.label()).with_field("file"))
            }
            Err(error) => Err(disk_error(&entry.label(), &error)),
        }
    }

    /// Completes a merge: the disk continues with its parent's file, and its own file is removed.
    /// `had_failed`: the disk was not in service before the merge. The merge then succeeds even if
    /// the disk cannot be opened: a disk with too many layers may need several merges.
    pub(super) fn continue_with_merged(
        &mut self,
        operation: &OperationHandle,
        entry: &DiskEntry,
        merged: &DiskPlan,
        had_failed: bool,
    ) -> Result<(), ApiError> {
        let edit = self.edit_of(entry, |config| {
            config.file = merged.file.as_ref().and_then(store_file);
            config.kind = merged.kind.map(contract_kind);
            config.parent = merged.parent.as_ref().and_then(store_file);
        })?;
        let required = entry.lock().required.clone();
        let child_file = required.config.effective_file();
        let Some(child_file) = child_file else { return Ok(()) };
        let child = DeletionRecord { store: required.store.path, file: child_file };
        let record = save_deletion_record(&child).map_err(|error| store_error(&error))?;
        let options = ChangeOptions { keeps_faulty_disks: had_failed, ..KEEP_MINIMUMS };
        self.apply_with_store_changes(operation, &edit, options, vec![record])?;
        if let Err(error) = self.remove_if_unused(&child, &self.shared.desired().config) {
            tracing::warn!(%error, "cannot delete the file of a merged disk");
        }
        Ok(())
    }

    fn edit_of(
        &self,
        entry: &DiskEntry,
        change: impl FnOnce(&mut DiskConfig),
    ) -> Result<Edit, ApiError> {
        let desired = self.shared.desired();
        let disk = desired.config.disks.iter().find(|disk| disk.name == entry.name);
        let mut config = disk.cloned().ok_or_else(|| not_found(ResourceKind::Disk, &entry.name))?;
        change(&mut config);
        Ok(Edit::Disk(ResourceEdit::Put(entry.name.clone(), config)))
    }

    /// Removes recorded files of a killed daemon that no disk uses.
    pub(crate) fn delete_recorded_files(
        &mut self,
        config: &HostConfig,
    ) -> Result<(), StateStoreError> {
        for record in load_deletion_records(self.store.as_ref())? {
            if let Err(error) = self.remove_if_unused(&record, config) {
                tracing::warn!(file = %record.path().display(), %error, "cannot delete a file yet");
            }
        }
        Ok(())
    }

    /// Removes a file unless a disk uses it, and deletes its record.
    fn remove_if_unused(
        &self,
        record: &DeletionRecord,
        config: &HostConfig,
    ) -> Result<(), ApiError> {
        let path = record.path();
        let is_used = required_disks(config).into_values().any(|required| {
            let parent = required.config.parent.as_ref();
            parent.is_some_and(|parent| required.store.path.join(parent.as_str()) == path)
                || required
                    .exclusive_resources()
                    .contains(&ExclusiveResource::File(normalize_path(&path)))
        });
        if !is_used {
            let failed = |error: String| ApiError::new(ErrorCode::HostError, error);
            let name = file_name(&record.file)
                .ok_or_else(|| failed("its recorded file has no valid name".to_owned()))?;
            let disks = &self.shared.disks;
            let (stores, store) = (disks.stores.clone(), record.store.clone());
            let remove = move || stores.files(&store)?.remove(&name);
            let removed = disks.threads.run(&record.store, STORE_TIMEOUT, remove, drop);
            match removed.map_err(StoreOperationError::abandon)? {
                Ok(()) => tracing::info!(
                    file = %path.display(),
                    "removed a file that no disk uses"
                ),
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(failed(error.to_string())),
            }
        }
        self.forget_doomed(record);
        Ok(())
    }

    fn forget_doomed(&self, record: &DeletionRecord) {
        if let Err(error) = self.store.commit(&[clear_deletion_record(record)]) {
            tracing::warn!(%error, "a deleted file is still recorded");
        }
    }
}
