//! What of VMs is kept in the state store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use suimon_contract::{Name, VmConfig};
use suimon_ports::{StateStore, StoreError};

use crate::iov::StoredVf;
use crate::records::{StoreChange, decode, encode, scan_all};

/// By name, [`StoredVm`].
pub(super) const VMS: &str = "vms";
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
