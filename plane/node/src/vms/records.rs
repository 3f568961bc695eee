//! What of VMs is kept in the state store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use suimon_contract::{Name, StoreToken, VmConfig};
use suimon_ports::{StateStore, StoreError};

use crate::iov::StoredVf;
use crate::records::{StoreChange, decode, encode, scan_all};

/// By name, [`StoredVm`].
pub(super) const VMS: &str = "vms";
/// By the migration's name, when it became active: answers to who asks again.
const ARRIVALS: &str = "arrivals";
/// Arrivals that are remembered. A node that asks does so within seconds, or once it is back.
const ARRIVALS_MAX: usize = 1000;
/// `boot`: which start of the host it was when a daemon was last there.
const HOST: &str = "host";
const BOOT: &str = "boot";

/// A VM that is desired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredVm {
    pub(crate) uuid: [u8; 16],
    pub(crate) user: u32,
    /// What runs, or was about to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<StoredRun>,
    /// Whether it moves, or has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) moving: Option<StoredMove>,
}

/// A VM that moves from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StoredMove {
    /// It comes, and never runs here until that is over.
    Arriving {
        /// Names the migration.
        id: String,
        /// The host that it leaves.
        from: String,
        /// Its disks that are handed over; that host has their files until it has come.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        handed_over: Vec<Name>,
    },
    /// It may go on here, and it may be that the other node was never told of it.
    Leaving(StoredLeave),
    /// Only the other node knows whose it is.
    HandedOver(StoredLeave),
    /// It is the other node's. Nothing of it is started here any more.
    Left(StoredLeave),
}

/// A VM that leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredLeave {
    /// Names the migration.
    pub(crate) id: String,
    /// The other node.
    pub(crate) to: Name,
    /// Whether its CPUs stood still before.
    pub(crate) was_paused: bool,
    /// Whether the files of its disks go with it.
    pub(crate) with_files: bool,
    /// Its disks that are copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) copied: Vec<Name>,
    /// Its disks that are handed over: the other node sees their files too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) handed_over: Vec<Name>,
    /// By what their stores are known there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) stores: Vec<StoreToken>,
}

/// A VM that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredRun {
    pub(crate) folder: PathBuf,
    /// Its process and when that was started; absent if a daemon was killed before it knew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) process: Option<(u32, u64)>,
    pub(crate) started_unix_ms: u64,
    pub(crate) as_started: VmConfig,
    pub(crate) nics: BTreeSet<Name>,
    pub(crate) disks: BTreeSet<Name>,
    /// NICs that were plugged in as standbys of virtual functions.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) standbys: BTreeSet<Name>,
    /// The virtual functions that NICs were given, or are about to be.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) vfs: BTreeMap<Name, StoredVf>,
    /// Whether its guest's file systems may be frozen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_frozen: bool,
    /// True if it was paused on request: it does not go on when there is space for its writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_held: bool,
}

/// All VMs that are recorded.
pub(crate) fn load_vms(store: &dyn StateStore) -> Result<Vec<(Name, StoredVm)>, StoreError> {
    let mut vms = Vec::new();
    scan_all(store, VMS, &mut |key, value| {
        let vm: StoredVm = decode(VMS, key, value)?;
        // A name that is none any more belongs to no VM that can be desired.
        if let Ok(name) = key.parse::<Name>() {
            vms.push((name, vm));
        }
        Ok(())
    })?;
    Ok(vms)
}

pub(crate) fn save_vm(name: &Name, vm: &StoredVm) -> Result<StoreChange, StoreError> {
    Ok((VMS, name.to_string(), Some(encode(name.as_str(), vm)?)))
}

pub(crate) fn clear_vm(name: &Name) -> StoreChange {
    (VMS, name.to_string(), None)
}

/// Which start of the host it was when a daemon was last there.
pub(crate) fn load_boot(store: &dyn StateStore) -> Result<Option<String>, StoreError> {
    let bytes = store.read(HOST, BOOT)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

pub(crate) fn save_boot(boot_id: &str) -> StoreChange {
    (HOST, BOOT.to_owned(), Some(boot_id.as_bytes().to_vec()))
}

/// Whether a VM that came by this migration became this node's.
pub(crate) fn has_arrived(store: &dyn StateStore, id: &str) -> Result<bool, StoreError> {
    Ok(store.read(ARRIVALS, id)?.is_some())
}

/// Notes that it did. The oldest are forgotten.
pub(crate) fn save_arrived(
    store: &dyn StateStore,
    id: &str,
    unix_ms: u64,
) -> Result<Vec<StoreChange>, StoreError> {
    let mut known: Vec<(u64, String)> = Vec::new();
    scan_all(store, ARRIVALS, &mut |key, value| {
        known.push((decode(ARRIVALS, key, value)?, key.to_owned()));
        Ok(())
    })?;
    known.sort_unstable();
    let surplus = (known.len() + 1).saturating_sub(ARRIVALS_MAX);
    let gone = known.into_iter().take(surplus).map(|(_, id)| (ARRIVALS, id, None));
    let mut changes: Vec<StoreChange> = gone.collect();
    changes.push((ARRIVALS, id.to_owned(), Some(encode(id, &unix_ms)?)));
    Ok(changes)
}
