//! Entries of the state store and their encoding.
//!
//! | table | key | value |
//! |---|---|---|
//! | `desired` | `current` | [`StoredState`] |
//! | `desired` | `intent` | [`Intent`] of a change in progress |
//! | `events` | sequence, 20 digits | event |
//! | `owned` | `netns/device` | [`OwnedTap`] that the daemon may have created |
//! | `sockets` | path | [`OwnedSocket`] that the daemon may delete |
//! | `disk_work` | disk name | disk job in progress (`disks/unfinished.rs`) |
//! | `measured` | store name | [`MeasuredStore`]: measured capacity |
//! | `vms` | VM name | `StoredVm`: identity, user and running process (`vms/records.rs`) |
//! | `arrivals` | migration id | time at which the VM became active here (`vms/records.rs`) |
//! | `host` | `boot` | boot identifier of the host at the last start of a daemon |
//! | `host` | `drain` | drained state (`drain.rs`) |
//! | `host` | `events` | highest reserved sequence of events, in decimal (`events.rs`) |
//! | `power` | path of the setting below sysfs | value before the change (`power/records.rs`) |
//! | `cluster` | … | cluster membership (`cluster/records.rs`) |
//! | `nic_addresses` | NIC name | address bound to the NIC (`bound_addresses.rs`) |
//! | `promises` | NIC name, or like `disk/boot` | negotiated features (`devices/promises.rs`) |
//! | `doomed` | path | [`DoomedFile`] without a disk, to be deleted |
//!
//! Values are JSON, readable for people and for later versions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use suimon_contract::{HostConfig, Name, StoreFile};
use suimon_ports::{FileIdentity, LeftSocket, StateStore, StoreError};

use crate::disks::MeasuredStore;
use crate::wanted::Tap;

pub(crate) const DESIRED: &str = "desired";
pub(crate) const EVENTS: &str = "events";
pub(crate) const OWNED: &str = "owned";
pub(crate) const SOCKETS: &str = "sockets";

pub(crate) const DOOMED: &str = "doomed";

pub(crate) const NIC_ADDRESSES: &str = "nic_addresses";

pub(crate) const DISK_WORK: &str = "disk_work";

pub(crate) const MEASURED: &str = "measured";

const HOST: &str = "host";
const CURRENT: &str = "current";
const INTENT: &str = "intent";

/// Number of entries per read of the store.
const SCAN_ENTRIES: usize = 1024;

/// Change of one entry: table, key, and new value or `None` to delete the entry.
pub(crate) type StoreChange = (&'static str, String, Option<Vec<u8>>);

/// Desired state as of the last acknowledged change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredState {
    /// Number of changes made so far.
    pub(crate) revision: u64,
    /// Configuration of the host.
    pub(crate) config: HostConfig,
    /// Text of the host file when it was last applied. A start with the same text does not revert
    /// later changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file_text: Option<String>,
}

/// Change in progress. If a record exists at the start of the daemon, the change was not
/// acknowledged and the current state is valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Intent {
    /// Revision that the change would have created.
    pub(crate) revision: u64,
    /// Kind of the operation, for the event.
    pub(crate) kind: String,
}

/// TAP that the daemon may have created. The device's mark decides whether it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OwnedTap {
    pub(crate) device: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) netns: Option<String>,
}

/// Socket file that the daemon created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OwnedSocket {
    pub(crate) absent_unix_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<OwnedFile>,
}

/// Identity of a socket file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OwnedFile {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made_unix_ns: Option<u64>,
}

/// File that is being created for a disk, or that no disk uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DoomedFile {
    /// Path of the store's folder.
    pub(crate) store: PathBuf,
    /// Name of the file in the store.
    pub(crate) file: StoreFile,
}

impl DoomedFile {
    pub(crate) fn path(&self) -> PathBuf {
        self.store.join(self.file.as_str())
    }
}

/// Reads the desired state; `None` if the store is new.
pub(crate) fn load_state(store: &dyn StateStore) -> Result<Option<StoredState>, StoreError> {
    load(store, DESIRED, CURRENT)
}

/// Reads the change that was in progress when the last daemon process ended.
pub(crate) fn load_intent(store: &dyn StateStore) -> Result<Option<Intent>, StoreError> {
    load(store, DESIRED, INTENT)
}

pub(crate) fn save_state(state: &StoredState) -> Result<StoreChange, StoreError> {
    Ok((DESIRED, CURRENT.to_owned(), Some(encode(CURRENT, state)?)))
}

pub(crate) fn save_intent(intent: &Intent) -> Result<StoreChange, StoreError> {
    Ok((DESIRED, INTENT.to_owned(), Some(encode(INTENT, intent)?)))
}

pub(crate) fn clear_intent() -> StoreChange {
    (DESIRED, INTENT.to_owned(), None)
}

/// Reads the records of TAPs that the daemon may have created.
pub(crate) fn load_owned(store: &dyn StateStore) -> Result<Vec<Tap>, StoreError> {
    let mut taps = Vec::new();
    scan_all(store, OWNED, &mut |key, value| {
        let tap: OwnedTap = decode(OWNED, key, value)?;
        taps.push(Tap { netns: tap.netns, device: tap.device });
        Ok(())
    })?;
    Ok(taps)
}

pub(crate) fn save_owned(tap: &Tap) -> Result<StoreChange, StoreError> {
    let record = OwnedTap { device: tap.device.clone(), netns: tap.netns.clone() };
    Ok((OWNED, owned_key(tap), Some(encode(OWNED, &record)?)))
}

pub(crate) fn clear_owned(tap: &Tap) -> StoreChange {
    (OWNED, owned_key(tap), None)
}

/// Reads the records of socket files that the daemon created.
pub(crate) fn load_sockets(store: &dyn StateStore) -> Result<Vec<LeftSocket>, StoreError> {
    let mut sockets = Vec::new();
    scan_all(store, SOCKETS, &mut |key, value| {
        let socket: OwnedSocket = decode(SOCKETS, key, value)?;
        let identity = socket.file.map(|file| FileIdentity {
            device: file.device,
            inode: file.inode,
            made_unix_ns: file.made_unix_ns,
        });
        let absent_unix_ms = socket.absent_unix_ms;
        sockets.push(LeftSocket { path: key.into(), identity, absent_unix_ms });
        Ok(())
    })?;
    Ok(sockets)
}

pub(crate) fn save_socket(socket: &LeftSocket) -> Result<StoreChange, StoreError> {
    let file = socket.identity.map(|identity| OwnedFile {
        device: identity.device,
        inode: identity.inode,
        made_unix_ns: identity.made_unix_ns,
    });
    let record = OwnedSocket { absent_unix_ms: socket.absent_unix_ms, file };
    Ok((SOCKETS, path_key(&socket.path), Some(encode(SOCKETS, &record)?)))
}

pub(crate) fn clear_socket(path: &Path) -> StoreChange {
    (SOCKETS, path_key(path), None)
}

/// Reads all files that are to be deleted.
pub(crate) fn load_doomed(store: &dyn StateStore) -> Result<Vec<DoomedFile>, StoreError> {
    let mut files = Vec::new();
    scan_all(store, DOOMED, &mut |key, value| {
        files.push(decode(DOOMED, key, value)?);
        Ok(())
    })?;
    Ok(files)
}

pub(crate) fn save_doomed(doomed: &DoomedFile) -> Result<StoreChange, StoreError> {
    Ok((DOOMED, path_key(&doomed.path()), Some(encode(DOOMED, doomed)?)))
}

pub(crate) fn clear_doomed(doomed: &DoomedFile) -> StoreChange {
    (DOOMED, path_key(&doomed.path()), None)
}

/// Reads the measured capacities of stores.
pub(crate) fn load_measured(
    store: &dyn StateStore,
) -> Result<BTreeMap<Name, MeasuredStore>, StoreError> {
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
) -> Result<StoreChange, StoreError> {
    Ok((MEASURED, name.to_string(), Some(encode(MEASURED, measured)?)))
}

pub(crate) fn clear_measured(name: &Name) -> StoreChange {
    (MEASURED, name.to_string(), None)
}

/// Returns the key of a path. Validation rejects paths that are not UTF-8.
fn path_key(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns the key of a TAP. Neither part can contain a `/`.
fn owned_key(tap: &Tap) -> String {
    format!("{}/{}", tap.netns.as_deref().unwrap_or_default(), tap.device)
}

/// Reads the highest reserved sequence of events; 0 if none was reserved.
pub(crate) fn load_reserved_events(store: &dyn StateStore) -> Result<u64, StoreError> {
    Ok(load(store, HOST, EVENTS)?.unwrap_or_default())
}

pub(crate) fn save_reserved_events(last: u64) -> StoreChange {
    (HOST, EVENTS.to_owned(), Some(last.to_string().into_bytes()))
}

/// Returns the key of an event. Keys sort in the order of the sequences.
pub(crate) fn event_key(sequence: u64) -> String {
    format!("{sequence:020}")
}

/// Function that receives the key and the value of an entry.
type EachEntry<'f> = dyn FnMut(&str, &[u8]) -> Result<(), StoreError> + 'f;

/// Calls `each` for every entry of a table, in the order of the keys.
pub(crate) fn scan_all(
    store: &dyn StateStore,
    table: &str,
    each: &mut EachEntry<'_>,
) -> Result<(), StoreError> {
    let mut from = String::new();
    loop {
        let entries = store.scan(table, &from, SCAN_ENTRIES)?;
        for (key, value) in &entries {
            each(key, value)?;
        }
        match entries.last() {
            Some((last, _)) if entries.len() == SCAN_ENTRIES => from = format!("{last}\0"),
            _ => return Ok(()),
        }
    }
}

fn load<T: DeserializeOwned>(
    store: &dyn StateStore,
    table: &str,
    key: &str,
) -> Result<Option<T>, StoreError> {
    store.read(table, key)?.map(|value| decode(table, key, &value)).transpose()
}

pub(crate) fn encode<T: Serialize>(what: &str, value: &T) -> Result<Vec<u8>, StoreError> {
    suimon_contract::to_stored(value).map_err(|error| {
        StoreError::new(format!("`{what}` cannot be written to the state store: {error}"))
    })
}

pub(crate) fn decode<T: DeserializeOwned>(
    table: &str,
    key: &str,
    value: &[u8],
) -> Result<T, StoreError> {
    suimon_contract::from_json(value).map_err(|error| {
        StoreError::new(format!(
            "entry `{key}` of table `{table}` in the state store cannot be read: {error}; it was written by \
             another version or is damaged. Start the version that wrote it, or start with \
             another --state-dir"
        ))
    })
}
