//! Records of disks in the state store: files to be deleted, and measured capacities of stores.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use suimon_contract::{Name, StoreFile};
use suimon_ports::{StateStore, StateStoreError};

use super::MeasuredStore;
use crate::state::{StoreChange, decode, encode, path_key, scan_all};

pub(crate) const DELETIONS_TABLE: &str = "doomed";

pub(crate) const DISK_JOBS_TABLE: &str = "disk_work";

pub(crate) const MEASUREMENTS_TABLE: &str = "measured";

/// File that is being created for a disk, or that no disk uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeletionRecord {
    /// Path of the store's folder.
    pub(crate) store: PathBuf,
    /// Name of the file in the store.
    pub(crate) file: StoreFile,
}

impl DeletionRecord {
    pub(crate) fn path(&self) -> PathBuf {
        self.store.join(self.file.as_str())
    }
}

/// Reads the records of the table `doomed`: files that are to be deleted unless a disk uses them.
pub(crate) fn load_deletion_records(
    store: &dyn StateStore,
) -> Result<Vec<DeletionRecord>, StateStoreError> {
    let mut files = Vec::new();
    scan_all(store, DELETIONS_TABLE, &mut |key, value| {
        files.push(decode(DELETIONS_TABLE, key, value)?);
        Ok(())
    })?;
    Ok(files)
}

pub(crate) fn save_deletion_record(
    record: &DeletionRecord,
) -> Result<StoreChange, StateStoreError> {
    Ok((DELETIONS_TABLE, path_key(&record.path()), Some(encode(DELETIONS_TABLE, record)?)))
}

pub(crate) fn clear_deletion_record(record: &DeletionRecord) -> StoreChange {
    (DELETIONS_TABLE, path_key(&record.path()), None)
}

/// Reads the measured capacities of stores.
pub(crate) fn load_measurements(
    store: &dyn StateStore,
) -> Result<BTreeMap<Name, MeasuredStore>, StateStoreError> {
    let mut stores = BTreeMap::new();
    scan_all(store, MEASUREMENTS_TABLE, &mut |key, value| {
        if let Ok(name) = key.parse::<Name>() {
            stores.insert(name, decode(MEASUREMENTS_TABLE, key, value)?);
        }
        Ok(())
    })?;
    Ok(stores)
}

pub(crate) fn save_measurement(
    name: &Name,
    measured: &MeasuredStore,
) -> Result<StoreChange, StateStoreError> {
    Ok((MEASUREMENTS_TABLE, name.to_string(), Some(encode(MEASUREMENTS_TABLE, measured)?)))
}

pub(crate) fn clear_measurement(name: &Name) -> StoreChange {
    (MEASUREMENTS_TABLE, name.to_string(), None)
}
