//! Records of VMs in the state store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use suimon_contract::{Name, StoreToken, VmConfig};
use suimon_frame::MacAddr;
use suimon_ports::{StateStore, StateStoreError};

use crate::state::{StoreChange, decode, encode, scan_all};
use crate::virtual_functions::StoredVfId;

/// Table of [`StoredVm`] by VM name.
pub(super) const VMS: &str = "vms";
/// Table of completed incoming migrations whose VM was deleted on this node since: time of the
/// deletion in Unix milliseconds by migration id. By these records, the daemon answers a source
/// that repeats its request, so that the source does not resume its copy of the VM.
const COMPLETED_INCOMING: &str = "arrivals";
/// Maximum number of records in [`COMPLETED_INCOMING`]; the oldest are deleted. Migrations of
/// existing VMs are recorded with the VM ([`StoredVm::arrived`]) and not limited, because a source
/// that was off for any time would otherwise resume a VM that runs here.
const ARRIVALS_MAX: usize = 10_000;

/// Record of a configured VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredVm {
    pub(crate) uuid: [u8; 16],
    #[serde(rename = "user")]
    pub(crate) user_id: u32,
    /// Current run, recorded before the process is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<StoredRun>,
    /// Migration in progress or completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "moving")]
    pub(crate) migration: Option<StoredMigrationState>,
    /// Id of the migration by which the VM came to this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "arrived")]
    pub(crate) incoming_migration_id: Option<String>,
    /// Virtual functions, with their NICs, that an ended run has had and that are not back at the
    /// host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "held_vfs")]
    pub(crate) unreturned_vfs: Vec<(Name, StoredVfId)>,
}

/// Migration state of a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StoredMigrationState {
    /// Incoming migration in progress. The VM never runs here before the activation.
    #[serde(rename = "Arriving")]
    Incoming {
        /// Identifier of the migration, which both nodes use.
        id: String,
        /// Host name of the source node.
        #[serde(rename = "from")]
        source_node: String,
        /// Disks that are handed over. The source has their files open until the activation.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[serde(rename = "handed_over")]
        handed_over_disks: Vec<Name>,
    },
    /// Outgoing migration in progress. The VM may continue here; the destination may not have
    /// received the request.
    #[serde(rename = "Leaving")]
    Outgoing(StoredMigration),
    /// The destination was requested to activate the VM. Only the destination's state determines
    /// which node owns it.
    HandedOver(StoredMigration),
    /// The VM belongs to the destination and is never started here again.
    #[serde(rename = "Left")]
    Migrated(StoredMigration),
}

/// Outgoing migration of a VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredMigration {
    /// Identifier of the migration, which both nodes use.
    pub(crate) id: String,
    /// Name of the destination node.
    #[serde(rename = "to")]
    pub(crate) destination_node: Name,
    /// True if the VM was paused before the migration.
    pub(crate) was_paused: bool,
    /// True if the files of its disks are deleted here after the migration.
    #[serde(rename = "with_files")]
    pub(crate) deletes_files: bool,
    /// Disks whose contents are copied to the destination.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "copied")]
    pub(crate) copied_disks: Vec<Name>,
    /// Disks that are handed over: the destination accesses the same files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "handed_over")]
    pub(crate) handed_over_disks: Vec<Name>,
    /// Tokens by which the destination identifies the stores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) stores: Vec<StoreToken>,
}

/// Record of a started VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredRun {
    pub(crate) folder: PathBuf,
    /// Process id and start time in clock ticks since boot; `None` if the daemon was killed before
    /// it received them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "process")]
    pub(crate) process_id_and_start: Option<(u32, u64)>,
    pub(crate) started_unix_ms: u64,
    #[serde(rename = "as_started")]
    pub(crate) start_config: VmConfig,
    pub(crate) nics: BTreeSet<Name>,
    pub(crate) disks: BTreeSet<Name>,
    /// MAC addresses with which NICs were plugged. NICs that a version without this record plugged
    /// are missing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) macs: BTreeMap<Name, MacAddr>,
    /// NICs plugged as standbys of virtual functions.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) standbys: BTreeSet<Name>,
    /// Virtual functions by NIC, recorded before they are assigned.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) vfs: BTreeMap<Name, StoredVfId>,
    /// True if the guest's file systems may be frozen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_frozen: bool,
    /// True if the VM was paused on request. It is then not resumed when there is space for its
    /// writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "is_held")]
    pub(crate) is_paused_on_request: bool,
}

/// Returns the records of all VMs in the state store.
pub(crate) fn load_vms(store: &dyn StateStore) -> Result<Vec<(Name, StoredVm)>, StateStoreError> {
    let mut vms = Vec::new();
    scan_all(store, VMS, &mut |key, value| {
        let vm: StoredVm = decode(VMS, key, value)?;
        // Skips names that the current rules do not permit: no VM with such a name can be
        // configured.
        if let Ok(name) = key.parse::<Name>() {
            vms.push((name, vm));
        }
        Ok(())
    })?;
    Ok(vms)
}

pub(crate) fn save_vm(name: &Name, vm: &StoredVm) -> Result<StoreChange, StateStoreError> {
    Ok((VMS, name.to_string(), Some(encode(name.as_str(), vm)?)))
}

/// Returns the changes that delete the record of a VM and keep the id of the migration by which it
/// came, if it did.
pub(crate) fn vm_deletion_changes(
    store: &dyn StateStore,
    name: &Name,
    arrived: Option<&str>,
    unix_ms: u64,
) -> Result<Vec<StoreChange>, StateStoreError> {
    let result = arrived.map(|id| record_incoming(store, id, unix_ms)).transpose()?;
    let mut changes = result.unwrap_or_default();
    changes.push((VMS, name.to_string(), None));
    Ok(changes)
}

/// Returns true if this migration was activated on this node.
pub(crate) fn is_migration_activated(
    store: &dyn StateStore,
    id: &str,
) -> Result<bool, StateStoreError> {
    // In this order, because the deletion of a VM moves its id to the other table.
    let vms = load_vms(store)?;
    let is_arrival = |vm: &StoredVm| vm.incoming_migration_id.as_deref() == Some(id);
    Ok(vms.iter().any(|(_, vm)| is_arrival(vm)) || store.read(COMPLETED_INCOMING, id)?.is_some())
}

/// Returns the changes that record an activated migration whose VM is deleted, and that delete the
/// oldest records beyond `ARRIVALS_MAX`.
fn record_incoming(
    store: &dyn StateStore,
    id: &str,
    unix_ms: u64,
) -> Result<Vec<StoreChange>, StateStoreError> {
    let mut completed: Vec<(u64, String)> = Vec::new();
    scan_all(store, COMPLETED_INCOMING, &mut |key, value| {
        completed.push((decode(COMPLETED_INCOMING, key, value)?, key.to_owned()));
        Ok(())
    })?;
    completed.sort_unstable();
    let surplus = (completed.len() + 1).saturating_sub(ARRIVALS_MAX);
    let removed = completed.into_iter().take(surplus).map(|(_, id)| (COMPLETED_INCOMING, id, None));
    let mut changes: Vec<StoreChange> = removed.collect();
    changes.push((COMPLETED_INCOMING, id.to_owned(), Some(encode(id, &unix_ms)?)));
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MemoryStore, name};

    #[test]
    fn migrations_of_deleted_vms_are_recorded_up_to_a_bound_and_the_newest_stay() {
        let store = MemoryStore::default();
        let record = |number: usize| {
            let time = encode(COMPLETED_INCOMING, &number).unwrap();
            (COMPLETED_INCOMING, format!("id-{number}"), Some(time))
        };
        let full: Vec<StoreChange> = (0..ARRIVALS_MAX).map(record).collect();
        store.commit(&full).unwrap();
        let now = u64::try_from(ARRIVALS_MAX).unwrap();
        let changes = vm_deletion_changes(&store, &name("web"), Some("newest"), now).unwrap();
        store.commit(&changes).unwrap();
        assert_eq!(store.keys(COMPLETED_INCOMING).len(), ARRIVALS_MAX);
        let is_recorded = |id: &str| is_migration_activated(&store, id).unwrap();
        assert!(is_recorded("newest") && is_recorded("id-1") && !is_recorded("id-0"));
        let changes = vm_deletion_changes(&store, &name("web"), None, now).unwrap();
        assert_eq!(changes.len(), 1);
    }
}
