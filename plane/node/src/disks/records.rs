//! Records of disks in the state store: files to be deleted, and measured capacities of stores.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use suimon_contract::{Name, StoreFile};
use suimon_ports::{StateStore, StateStoreError};

use super::MeasuredStore;
use crate::state::{StoreChange, decode, encode, path_key, scan_all};

pub(crate) const DOOMED: &str = "doomed";

pub(crate) const DISK_WORK: &str = "disk_work";

pub(crate) const MEASURED: &str = "measured";

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
    scan_all(store, DOOMED, &mut |key, value| {
        files.push(decode(DOOMED, key, value)?);
        Ok(())
    })?;
    Ok(files)
}

pub(crate) fn save_deletion_record(
    record: &DeletionRecord,
) -> Result<StoreChange, StateStoreError> {
    Ok((DOOMED, path_key(&record.path()), Some(encode(DOOMED, record)?)))
}

pub(crate) fn clear_deletion_record(record: &DeletionRecord) -> StoreChange {
    (DOOMED, path_key(&record.path()), None)
}

/// Reads the measured capacities of stores.
pub(crate) fn load_measured(
    store: &dyn StateStore,
) -> Result<BTreeMap<Name, MeasuredStore>, StateStoreError> {
    let mut stores = BTreeMap::new();
    scan_all(store, MEASURED, &mut |key, value| {
        if let Ok(name) = key.parse::<Name>() {
            stores.insert(name, decode(MEASURED, key, value)?);
        }
        Ok(())
    })?;
    Ok(stores)
}

pub(crate) fn save_measured(
    name: &Name,
    measured: &MeasuredStore,
) -> Result<StoreChange, StateStoreError> {
    Ok((MEASURED, name.to_string(), Some(encode(MEASURED, measured)?)))
}

pub(crate) fn clear_measured(name: &Name) -> StoreChange {
    (MEASURED, name.to_string(), None)
}
