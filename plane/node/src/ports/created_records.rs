//! Records of TAPs and socket files that the daemon created, in the state store.

use std::path::Path;

use serde::{Deserialize, Serialize};
use suimon_ports::{FileIdentity, StaleSocket, StateStore, StateStoreError};

use crate::state::{StoreChange, decode, encode, path_key, scan_all};
use crate::transaction::NetworkDeviceId;

const OWNED: &str = "owned";

const SOCKETS: &str = "sockets";

/// TAP that the daemon may have created. The device's mark decides whether it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OwnedTap {
    device: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    netns: Option<String>,
}

/// Socket file that the daemon created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OwnedSocket {
    absent_unix_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<OwnedFile>,
}

/// Identity of a socket file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OwnedFile {
    device: u64,
    inode: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made_unix_ns: Option<u64>,
}

/// Reads the records of TAPs that the daemon may have created.
pub(super) fn load_created_taps(
    store: &dyn StateStore,
) -> Result<Vec<NetworkDeviceId>, StateStoreError> {
    let mut taps = Vec::new();
    scan_all(store, OWNED, &mut |key, value| {
        let tap: OwnedTap = decode(OWNED, key, value)?;
        taps.push(NetworkDeviceId { netns: tap.netns, device: tap.device });
        Ok(())
    })?;
    Ok(taps)
}

pub(super) fn save_created_tap(tap: &NetworkDeviceId) -> Result<StoreChange, StateStoreError> {
    let record = OwnedTap { device: tap.device.clone(), netns: tap.netns.clone() };
    Ok((OWNED, owned_key(tap), Some(encode(OWNED, &record)?)))
}

pub(super) fn clear_created_tap(tap: &NetworkDeviceId) -> StoreChange {
    (OWNED, owned_key(tap), None)
}

/// Reads the records of socket files that the daemon created.
pub(super) fn load_sockets(store: &dyn StateStore) -> Result<Vec<StaleSocket>, StateStoreError> {
    let mut sockets = Vec::new();
    scan_all(store, SOCKETS, &mut |key, value| {
        let socket: OwnedSocket = decode(SOCKETS, key, value)?;
        let identity = socket.file.map(|file| FileIdentity {
            device: file.device,
            inode: file.inode,
            created_unix_ns: file.made_unix_ns,
        });
        let absent_unix_ms = socket.absent_unix_ms;
        sockets.push(StaleSocket { path: key.into(), identity, absent_unix_ms });
        Ok(())
    })?;
    Ok(sockets)
}

pub(super) fn save_socket(socket: &StaleSocket) -> Result<StoreChange, StateStoreError> {
    let file = socket.identity.map(|identity| OwnedFile {
        device: identity.device,
        inode: identity.inode,
        made_unix_ns: identity.created_unix_ns,
    });
    let record = OwnedSocket { absent_unix_ms: socket.absent_unix_ms, file };
    Ok((SOCKETS, path_key(&socket.path), Some(encode(SOCKETS, &record)?)))
}

pub(super) fn clear_socket(path: &Path) -> StoreChange {
    (SOCKETS, path_key(path), None)
}

/// Returns the key of a TAP. Neither part can contain a `/`.
fn owned_key(tap: &NetworkDeviceId) -> String {
    format!("{}/{}", tap.netns.as_deref().unwrap_or_default(), tap.device)
}
