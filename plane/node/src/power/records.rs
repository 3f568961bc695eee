//! Records of changed settings: table `power` of the state store, by the setting's file.

use suimon_ports::{StateStore, StateStoreError};
use suimon_power::{SettingId, SettingRecords};

use crate::state::{StoreChange, decode, encode, scan_all};

const POWER: &str = "power";

/// Returns all records. Keys that are not a setting's file are ignored and kept.
pub(super) fn load(store: &dyn StateStore) -> Result<SettingRecords, StateStoreError> {
    let mut records = SettingRecords::new();
    scan_all(store, POWER, &mut |key, value| {
        if let Some(id) = SettingId::from_file(key) {
            records.insert(id, decode(POWER, key, value)?);
        }
        Ok(())
    })?;
    Ok(records)
}

/// Replaces the records `before` by `after`. The change is durable when the function returns.
pub(super) fn save(
    store: &dyn StateStore,
    before: &SettingRecords,
    after: &SettingRecords,
) -> Result<(), StateStoreError> {
    let mut changes: Vec<StoreChange> = Vec::new();
    for (id, record) in after {
        if before.get(id) != Some(record) {
            changes.push((POWER, id.file(), Some(encode(POWER, record)?)));
        }
    }
    let removed = before.keys().filter(|id| !after.contains_key(id));
    changes.extend(removed.map(|id| (POWER, id.file(), None)));
    if changes.is_empty() { Ok(()) } else { store.commit(&changes) }
}
