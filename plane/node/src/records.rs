//! What is kept in the state store, and how it is written.
//!
//! | table | key | value |
//! |---|---|---|
//! | `desired` | `current` | [`StoredState`] |
//! | `desired` | `intent` | [`Intent`] of a change under way |
//! | `events` | sequence, 20 digits | the event |
//! | `owned` | `netns/device` | [`OwnedTap`] that may be deleted by us |
//! | `sockets` | the path | [`OwnedSocket`] that may be deleted by us |
//! | `disk_work` | the disk's name | work on it that is under way (`disks/unfinished.rs`) |
//! | `measured` | the store's name | [`MeasuredStore`]: what it could do when it was measured |
//! | `vms` | the VM's name | `StoredVm`: its identity, its user, and what runs (`vms/records.rs`) |
//! | `host` | `boot` | which start of the host it was when a daemon was last there |
//! | `host` | `drain` | that the host is drained (`drain.rs`) |
//! | `power` | the setting's file below sysfs | what it was before it was changed (`power/records.rs`) |
//! | `cluster` | … | what is kept of the cluster (`cluster/records.rs`) |
//! | `nic_addresses` | the NIC's name | the address bound to the NIC (`bound_addresses.rs`) |
//! | `doomed` | the path | [`DoomedFile`] of a store, which no disk has, to be deleted |
//!
//! Values are JSON, so that a store can be read by people and by later versions.

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

const CURRENT: &str = "current";
const INTENT: &str = "intent";

/// Entries read from the store at a time.
const SCAN_ENTRIES: usize = 1024;

/// One change of the store.
pub(crate) type StoreChange = (&'static str, String, Option<Vec<u8>>);

/// Desired state, as acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredState {
    /// Counts up with every change.
    pub(crate) revision: u64,
    /// What is desired.
    pub(crate) config: HostConfig,
    /// The host file's text when it was last applied. A start-up with the same
    /// text does not undo what was changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file_text: Option<String>,
}

/// A change that was begun. Found at start-up, it was never acknowledged and
/// the current state holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Intent {
    /// The revision it would have made.
    pub(crate) revision: u64,
    /// What kind of change, for the event's text.
    pub(crate) kind: String,
}

/// A TAP that did not exist before we made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OwnedTap {
    pub(crate) device: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) netns: Option<String>,
}

/// The file of a socket that was not there before we made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OwnedSocket {
    pub(crate) absent_unix_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<OwnedFile>,
}

/// Which file it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OwnedFile {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made_unix_ns: Option<u64>,
}

/// A file that is being made for a disk, or that a disk does not need any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DoomedFile {
    /// The store's path.
    pub(crate) store: PathBuf,
    /// Its name there.
    pub(crate) file: StoreFile,
}

impl DoomedFile {
    pub(crate) fn path(&self) -> PathBuf {
        self.store.join(self.file.as_str())
    }
}

/// The desired state in the store; `None` if the store is new.
pub(crate) fn load_state(store: &dyn StateStore) -> Result<Option<StoredState>, StoreError> {
    load(store, DESIRED, CURRENT)
}

/// The change that was under way when the daemon was last stopped.
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

/// All TAPs recorded as ours.
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

/// All socket files recorded as ours.
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

/// All files that are to be deleted.
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

/// What stores could do when they were measured.
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

/// Validation lets no path through that is not UTF-8.
fn path_key(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Neither part can hold a `/`.
fn owned_key(tap: &Tap) -> String {
    format!("{}/{}", tap.netns.as_deref().unwrap_or_default(), tap.device)
}

/// The key of an event; keys sort as the sequences do.
pub(crate) fn event_key(sequence: u64) -> String {
    format!("{sequence:020}")
}

/// What is done with an entry's key and value.
type EachEntry<'f> = dyn FnMut(&str, &[u8]) -> Result<(), StoreError> + 'f;

/// Calls `each` with every entry of a table, in the order of the keys.
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
    serde_json::to_vec(value).map_err(|error| StoreError {
        detail: format!("`{what}` cannot be written to the state store: {error}"),
    })
}

pub(crate) fn decode<T: DeserializeOwned>(
    table: &str,
    key: &str,
    value: &[u8],
) -> Result<T, StoreError> {
    serde_json::from_slice(value).map_err(|error| StoreError {
        detail: format!(
            "entry `{key}` of table `{table}` in the state store cannot be read: {error}; it was \
             written by another version or is damaged. Start the version that wrote it, or start \
             with another --state-dir"
        ),
    })
}
