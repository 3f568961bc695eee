//! Handling of full stores.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use suimon_contract::{DiskConfig, DiskFormat, EventKind, Name, StoreConfig};
use suimon_ports::{StoreFiles, StoreSpace};
use suimon_storage_engine::FullStorePolicy;

use super::{is_nearly_full, lock, used_percent};
use crate::control::Controller;
use crate::disks::{DiskEntry, Disks};
use crate::events::EventDraft;

/// Writes of disks that are queued because a store is full.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QueuedWrites {
    /// No writes are queued.
    Absent,
    /// This disk has queued writes.
    Queued(Name),
    /// The worker of this disk does not respond.
    Unknown(Name),
}

impl Disks {
    /// Starts a query of each configured or open store, in a store thread per query: whether its
    /// path can be read and, if the store is open, its space. A store whose last query has not
    /// ended is left out, and so are all further stores while half of the store threads work; the
    /// next call begins with those. Returns at once; a later call sees the results. The queries
    /// also give the stores the free space up to which files are extended.
    pub(crate) fn start_space_queries(&self, configured: &[StoreConfig]) {
        self.threads.resume_queued();
        let open: BTreeMap<PathBuf, Arc<dyn StoreFiles>> =
            self.stores.opened_stores().into_iter().collect();
        let is_configured = |path: &Path| configured.iter().any(|store| store.path == path);
        self.spaces.retain(
            |path| open.contains_key(path),
            |path| open.contains_key(path) || is_configured(path),
        );
        let paths: BTreeSet<PathBuf> =
            configured.iter().map(|store| &store.path).chain(open.keys()).cloned().collect();
        for path in self.spaces.in_query_order(paths) {
            if self.threads.is_half_used() {
                self.spaces.end_round_at(path);
                break;
            }
            let Some(query) = self.spaces.begin_query(&path) else { continue };
            let (stores, files, queried) =
                (Arc::clone(&self.stores), open.get(&path).cloned(), path.clone());
            let query = move || {
                let space = files.map(|files| files.space()).transpose();
                let check = stores.check(&queried).map_err(|error| error.to_string());
                let failure = space.as_ref().err().map(ToString::to_string);
                query.set(space.unwrap_or_default(), check.and(failure.map_or(Ok(()), Err)));
            };
            if let Err(error) = self.threads.start_detached(&path, query) {
                tracing::debug!(store = %path.display(), %error, "its space is not known");
            }
        }
    }

    /// Returns the last reported free bytes of these disks' stores, by path.
    pub(crate) fn free_bytes(&self, disks: &BTreeSet<Name>) -> BTreeMap<PathBuf, u64> {
        let entries = disks.iter().filter_map(|name| self.find(name));
        let paths = entries.map(|entry| entry.lock().required.store.path.clone());
        paths.filter_map(|path| Some((path.clone(), self.spaces.get(&path)?.free_bytes))).collect()
    }

    /// Returns the first of these disks that has requests queued because its store is full, or for
    /// which it is not known whether it has.
    pub(crate) fn queued_writes(&self, disks: &BTreeSet<Name>) -> QueuedWrites {
        let views = self.dependencies.plane.disks();
        let mut unknown = None;
        for name in disks {
            let id = self.disk_id(name);
            let view = views.iter().find(|view| view.disk == id);
            if view.and_then(|view| view.full_store).is_some_and(|full| full.queued > 0) {
                return QueuedWrites::Queued(name.clone());
            }
            let has_view = view.map_or_else(|| !self.is_in_service(id), |view| view.is_current);
            if !has_view && unknown.is_none() {
                unknown = Some(name.clone());
            }
        }
        unknown.map_or(QueuedWrites::Absent, QueuedWrites::Unknown)
    }

    /// Records whether the guest of a VM must complete its writes to a disk, because it shuts down
    /// or releases the disk. Meanwhile requests fail if the store is full, including queued ones,
    /// unless the disk belongs to another VM.
    pub(crate) fn set_writes_awaited(&self, disk: &Name, vm: &Name, is_awaited: bool) {
        let Some(entry) = self.find(disk) else { return };
        let mut awaited_by = lock(&entry.vms_awaiting_writes);
        let is_new = if is_awaited { awaited_by.insert(vm.clone()) } else { awaited_by.remove(vm) };
        if is_new {
            self.apply_full_policy_of(&entry, &awaited_by);
        }
    }

    /// Sets the full-store policy of a disk in service in the storage plane.
    pub(in crate::disks) fn apply_full_policy(&self, entry: &DiskEntry) {
        self.apply_full_policy_of(entry, &lock(&entry.vms_awaiting_writes));
    }

    fn apply_full_policy_of(&self, entry: &DiskEntry, awaited_by: &BTreeSet<Name>) {
        let policy = {
            let required = &entry.lock().required;
            let is_awaited = required.vm.as_ref().is_some_and(|vm| awaited_by.contains(vm));
            if is_awaited { FullStorePolicy::FAIL_AT_ONCE } else { required.full_policy() }
        };
        self.dependencies.plane.set_full_policy(entry.id, policy);
    }
}

impl Controller {
    /// Emits events for stores that cannot be read or became nearly full, and for the end of these
    /// states. Called every 10 s; evaluates the results of the previous call.
    pub(crate) fn report_store_space(&mut self) {
        let desired = self.shared.desired();
        let stores = &desired.config.stores;
        self.report_failed_stores(stores);
        self.shared.disks.start_space_queries(stores);
        self.nearly_full_stores.retain(|name| stores.iter().any(|store| store.name == *name));
        for store in stores {
            let Some(space) = self.shared.disks.spaces.get(&store.path) else { continue };
            let has_all = |disk: &&DiskConfig| {
                disk.store == store.name && disk.format == DiskFormat::PassThrough
            };
            // A pass-through disk uses the whole block device by design.
            if desired.config.disks.iter().any(|disk| has_all(&disk)) {
                continue;
            }
            let previous = self.nearly_full_stores.contains(&store.name);
            let current = is_nearly_full(store, &space, previous);
            if current == previous {
                continue;
            }
            self.drafts.push(nearly_full_event(store, &space, current).rate_limited());
            match current {
                true => self.nearly_full_stores.insert(store.name.clone()),
                false => self.nearly_full_stores.remove(&store.name),
            };
        }
    }
}

fn nearly_full_event(store: &StoreConfig, space: &StoreSpace, is_nearly_full: bool) -> EventDraft {
    let (percent, name) = (used_percent(space).unwrap_or_default(), &store.name);
    let (kind, text) = if is_nearly_full {
        let text = format!(
            "{percent} % of the space of store {name} is used. When it is full, requests that \
             need space are queued or fail. Free space on it, or move disks to another store."
        );
        (EventKind::StoreNearlyFull, text)
    } else {
        (EventKind::StoreHasSpace, format!("{percent} % of the space of store {name} is used."))
    };
    EventDraft::new(kind, format!("store/{name}"), text)
        .with("used_percent", percent)
        .with("warning_percent", store.full_warning_percent)
        .with("free_bytes", space.free_bytes)
        .with("total_bytes", space.total_bytes)
}
