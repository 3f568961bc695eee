//! Entries of the state store and their encoding.
//!
//! | table | key | value |
//! |---|---|---|
//! | `desired` | `current` | [`StoredState`] |
//! | `desired` | `intent` | [`Intent`] of a change in progress |
//! | `events` | sequence, 20 digits | event |
//! | `owned` | `netns/device` | TAP that the daemon may have created (`ports/created_records.rs`) |
//! | `sockets` | path | socket file that the daemon may delete (`ports/created_records.rs`) |
//! | `disk_work` | disk name | disk job in progress (`disks/job_record.rs`) |
//! | `new_disks` | disk name | disk that has had no image yet (`disks/new_disks.rs`) |
//! | `measured` | store name | measured capacity (`disks/records.rs`) |
//! | `vms` | VM name | `StoredVm`: identity, user and running process (`vms/records.rs`) |
//! | `arrivals` | migration id | time at which the VM became active here (`vms/records.rs`) |
//! | `host` | `boot` | boot identifier of the host at the last start of a daemon |
//! | `host` | `drain` | drained state (`drain.rs`) |
//! | `host` | `events` | highest reserved sequence of events, in decimal (`events.rs`) |
//! | `power` | path of the setting below sysfs | value before the change (`power/records.rs`) |
//! | `cluster` | … | cluster membership (`cluster/records.rs`) |
//! | `nic_addresses` | NIC name | address bound to the NIC (`ports/bound_addresses.rs`) |
//! | `promises` | NIC name, or like `disk/boot` | negotiated features
//! (`ports/negotiated_features.rs`) |
//! | `doomed` | path | file without a disk, to be deleted (`disks/records.rs`) |
//!
//! Values are JSON, readable for people and for later versions.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use suimon_contract::HostConfig;
use suimon_ports::{StateStore, StateStoreError};

const DESIRED: &str = "desired";
pub(crate) const EVENTS: &str = "events";

const HOST: &str = "host";
const BOOT: &str = "boot";
const AUTOSTART_BOOT: &str = "autostart_boot";
const CURRENT: &str = "current";
const INTENT: &str = "intent";

/// Number of entries per read of the store.
const SCAN_ENTRIES: usize = 1024;

/// Change of one entry: table, key, and new value or `None` to delete the entry.
pub type StoreChange = (&'static str, String, Option<Vec<u8>>);

/// Desired state as of the last acknowledged change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredState {
    /// Number of changes made so far.
    pub revision: u64,
    /// Desired configuration of the host.
    pub config: HostConfig,
    /// Text of the host file when it was last applied. A start with the same text does not revert
    /// later changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_text: Option<String>,
}

/// Change in progress. If a record exists at the start of the daemon, the change was not
/// acknowledged and the current state is valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// Revision that the change would have created.
    pub revision: u64,
    /// Kind of the operation, for the event.
    pub kind: String,
}

/// Reads the desired state; `None` if the store is new.
pub fn load_state(store: &dyn StateStore) -> Result<Option<StoredState>, StateStoreError> {
    load(store, DESIRED, CURRENT)
}

/// Reads the change that was in progress when the last daemon process ended.
pub fn load_intent(store: &dyn StateStore) -> Result<Option<Intent>, StateStoreError> {
    load(store, DESIRED, INTENT)
}

/// Returns the change that stores the desired state.
pub fn save_state(state: &StoredState) -> Result<StoreChange, StateStoreError> {
    Ok((DESIRED, CURRENT.to_owned(), Some(encode(CURRENT, state)?)))
}

/// Returns the change that records a change in progress.
pub fn save_intent(intent: &Intent) -> Result<StoreChange, StateStoreError> {
    Ok((DESIRED, INTENT.to_owned(), Some(encode(INTENT, intent)?)))
}

/// Returns the change that deletes the record of a change in progress.
pub fn clear_intent() -> StoreChange {
    (DESIRED, INTENT.to_owned(), None)
}

/// Returns the key of a path. Validation rejects paths that are not UTF-8.
pub fn path_key(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Reads the highest reserved sequence of events; 0 if none was reserved.
pub(crate) fn load_reserved_events(store: &dyn StateStore) -> Result<u64, StateStoreError> {
    Ok(load(store, HOST, EVENTS)?.unwrap_or_default())
}

pub(crate) fn save_reserved_events(last: u64) -> StoreChange {
    (HOST, EVENTS.to_owned(), Some(last.to_string().into_bytes()))
}

/// Returns the boot id of the host when a daemon last ran; `None` before the first run.
pub fn load_boot_id(store: &dyn StateStore) -> Result<Option<String>, StateStoreError> {
    let bytes = store.read(HOST, BOOT)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Returns the change that records the host's boot id (`/proc/sys/kernel/random/boot_id`).
pub fn save_boot_id(boot_id: &str) -> StoreChange {
    (HOST, BOOT.to_owned(), Some(boot_id.as_bytes().to_vec()))
}

/// Returns the boot id of the host at the last autostart of VMs; `None` if a daemon without this
/// record ran last.
pub fn load_autostart_boot_id(store: &dyn StateStore) -> Result<Option<String>, StateStoreError> {
    let bytes = store.read(HOST, AUTOSTART_BOOT)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Returns the change that records the boot id of an autostart of VMs.
pub fn save_autostart_boot_id(boot_id: &str) -> StoreChange {
    (HOST, AUTOSTART_BOOT.to_owned(), Some(boot_id.as_bytes().to_vec()))
}

/// Returns the key of an event. Keys sort in the order of the sequences.
pub(crate) fn event_key(sequence: u64) -> String {
    format!("{sequence:020}")
}

/// Callback of [`scan_all`]. Receives the key and the value of an entry; an error ends the scan.
type EachEntry<'f> = dyn FnMut(&str, &[u8]) -> Result<(), StateStoreError> + 'f;

/// Calls `visit` for every entry of a table, in the order of the keys.
pub fn scan_all(
    store: &dyn StateStore,
    table: &str,
    visit: &mut EachEntry<'_>,
) -> Result<(), StateStoreError> {
    let mut start = String::new();
    loop {
        let entries = store.scan(table, &start, SCAN_ENTRIES)?;
        for (key, value) in &entries {
            visit(key, value)?;
        }
        match entries.last() {
            Some((last, _)) if entries.len() == SCAN_ENTRIES => start = format!("{last}\0"),
            _ => return Ok(()),
        }
    }
}

fn load<T: DeserializeOwned>(
    store: &dyn StateStore,
    table: &str,
    key: &str,
) -> Result<Option<T>, StateStoreError> {
    store.read(table, key)?.map(|value| decode(table, key, &value)).transpose()
}

/// Encodes a value. `name` names it in the error.
pub fn encode<T: Serialize>(name: &str, value: &T) -> Result<Vec<u8>, StateStoreError> {
    suimon_contract::to_stored_json(value).map_err(|error| {
        StateStoreError::new(format!("the record `{name}` cannot be written: {error}"))
    })
}

/// Decodes the value of an entry.
pub fn decode<T: DeserializeOwned>(
    table: &str,
    key: &str,
    value: &[u8],
) -> Result<T, StateStoreError> {
    suimon_contract::from_json(value).map_err(|error| {
        StateStoreError::new(format!(
            "entry `{key}` of table `{table}` cannot be read: {error}; it was written by \
             another version or is damaged. Start the version that wrote it, or start with \
             another --state-dir"
        ))
    })
}
