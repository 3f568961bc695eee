//! Features that VMs on vhost-user NICs and disks depend on. They are stored, so that a daemon that
//! starts after a crash or an upgrade offers them again.
//!
//! Table `promises`; key: the NIC's name, or the disk's like `disk/boot`; value:
//! [`StoredNegotiatedFeatures`] as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use suimon_ports::{NegotiatedFeatures, PortDeviceSpec, StateStore, StateStoreError};

use crate::PortKey;
use crate::state::{StoreChange, decode, encode, scan_all};

const TABLE: &str = "promises";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredNegotiatedFeatures {
    features: u64,
    queue_pairs: u16,
}

/// Minimum interval between commits, because front-ends can negotiate features at any rate.
const WRITE_EVERY: Duration = Duration::from_millis(250);

/// Features and queue pairs that the VM has negotiated and relies on, by NIC or disk.
pub(crate) struct NegotiatedFeatureTable {
    store: Arc<dyn StateStore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stored: BTreeMap<String, StoredNegotiatedFeatures>,
    /// NICs and disks whose negotiated features are not persisted yet.
    unwritten: BTreeSet<String>,
    written_at: Option<Instant>,
    /// True if the last commit failed.
    has_failed: bool,
}

impl NegotiatedFeatureTable {
    pub(crate) fn load(store: Arc<dyn StateStore>) -> Result<Self, StateStoreError> {
        let mut stored = BTreeMap::new();
        scan_all(store.as_ref(), TABLE, &mut |key, value| {
            stored.insert(key.to_owned(), decode(TABLE, key, value)?);
            Ok(())
        })?;
        Ok(Self { store, state: Mutex::new(State { stored, ..State::default() }) })
    }

    /// Returns the specification of a device, with the negotiated features of its VM added.
    pub(crate) fn add_to_spec(&self, key: &PortKey, mut spec: PortDeviceSpec) -> PortDeviceSpec {
        if let PortDeviceSpec::VhostUser(vhost_user) = &mut spec {
            vhost_user.negotiated = self.features(key.name().as_str());
        }
        spec
    }

    /// Returns the negotiated features of a NIC or disk; the default value if none are recorded.
    pub(crate) fn features(&self, name: &str) -> NegotiatedFeatures {
        self.lock().stored.get(name).map_or_else(NegotiatedFeatures::default, |stored| {
            let StoredNegotiatedFeatures { features, queue_pairs } = *stored;
            NegotiatedFeatures { features, queue_pairs }
        })
    }

    /// Sets the negotiated features of a NIC. The default value deletes the record.
    pub(crate) fn set_port_features(&self, key: &PortKey, negotiated: NegotiatedFeatures) {
        self.set_features(key.name().as_str(), negotiated);
    }

    /// Sets the negotiated features of a NIC or disk by its name. The record is written at once, or
    /// by a later [`NegotiatedFeatureTable::write`] if the last commit is less than [`WRITE_EVERY`]
    /// ago.
    pub(crate) fn set_features(&self, name: &str, negotiated: NegotiatedFeatures) {
        let NegotiatedFeatures { features, queue_pairs } = negotiated;
        let name = name.to_owned();
        let features = (negotiated != NegotiatedFeatures::default())
            .then_some(StoredNegotiatedFeatures { features, queue_pairs });
        let mut state = self.lock();
        if state.stored.get(&name).copied() == features {
            return;
        }
        state.unwritten.insert(name.clone());
        match features {
            Some(features) => state.stored.insert(name, features),
            None => state.stored.remove(&name),
        };
        if state.written_at.is_none_or(|written_at| written_at.elapsed() >= WRITE_EVERY) {
            self.write_all(&mut state);
        }
    }

    /// Writes all features that are not stored yet, in one commit. If that fails, the next call
    /// writes them; open devices offer them in any case.
    pub(crate) fn write(&self) {
        self.write_all(&mut self.lock());
    }

    fn write_all(&self, state: &mut State) {
        if state.unwritten.is_empty() {
            return;
        }
        state.written_at = Some(Instant::now());
        let change = |name: &String| -> Result<StoreChange, StateStoreError> {
            let value = state.stored.get(name).map(|stored| encode(TABLE, stored)).transpose()?;
            Ok((TABLE, name.clone(), value))
        };
        let changes: Result<Vec<_>, _> = state.unwritten.iter().map(change).collect();
        match changes.and_then(|changes| self.store.commit(&changes)) {
            Ok(()) => {
                state.unwritten.clear();
                state.has_failed = false;
            }
            Err(error) => {
                if !state.has_failed {
                    let names = &state.unwritten;
                    tracing::warn!(
                        ?names,
                        %error,
                        "cannot save the state that running VMs depend on; the daemon retries"
                    );
                }
                state.has_failed = true;
            }
        }
    }

    /// Deletes the negotiated features of a deleted NIC.
    pub(crate) fn remove_port(&self, key: &PortKey) {
        if matches!(key, PortKey::Nic(_)) {
            self.set_port_features(key, NegotiatedFeatures::default());
        }
    }

    /// Deletes the negotiated features of a deleted disk.
    pub(crate) fn remove_disk(&self, label: &str) {
        self.set_features(label, NegotiatedFeatures::default());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
