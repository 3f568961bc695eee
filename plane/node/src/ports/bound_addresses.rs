//! Source addresses bound to NICs without a configured address.
//!
//! The first source address that the guest of a NIC without `mac` and `mac_spoofing` sends from is
//! bound to the NIC. The switch then drops frames from this address that other NICs send. A binding
//! ends when the guest disconnects, when another NIC sends from the address while the rings of the
//! guest are stopped, when `mac` or `mac_spoofing` is configured, and when the NIC is deleted.
//!
//! Bindings are kept in the state store: after a restart of the daemon, guests keep their addresses
//! regardless of the order in which they send. Such a binding is unconfirmed until the guest sends.
//! If the first source address differs, a different guest is connected, and the new address is
//! bound instead. A binding is also unconfirmed if its source address was reported between the
//! disconnection of one guest and the connection of the next.
//!
//! Guests cause changes of bindings. All changes since the last poll of the plane are written in
//! one commit and published together.

mod control;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use suimon_contract::{HostConfig, Name, NicBackend, NicConfig};
use suimon_frame::MacAddr;
use suimon_ports::{StateStore, StateStoreError};

use crate::state::{StoreChange, decode, encode, scan_all};

const NIC_ADDRESSES: &str = "nic_addresses";

/// Value in the table [`NIC_ADDRESSES`] of the state store.
#[derive(Serialize, Deserialize)]
struct StoredAddress {
    mac: MacAddr,
}

/// Address bound to a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) mac: MacAddr,
    /// True if the connected guest has certainly sent from the address.
    pub(crate) is_confirmed: bool,
}

/// Bindings of all NICs. Each collection has at most one entry per NIC of the configuration.
pub(crate) struct BoundAddresses {
    state: Mutex<State>,
    /// End of the time in which guests of the previous daemon process reconnect; their bindings are
    /// kept until then.
    reconnected: Instant,
}

#[derive(Default)]
struct State {
    bound: BTreeMap<Name, Binding>,
    /// NICs with a connected guest.
    connected: BTreeSet<Name>,
    /// NICs with guests that disconnected after the plane's notice queue was last empty. A source
    /// address that the plane reports for such a NIC may be that of its former guest.
    recently_left: BTreeSet<Name>,
    /// NICs with a binding that has changed since the last publication.
    changed: BTreeSet<Name>,
}

impl State {
    fn set(&mut self, nic: &Name, binding: Option<Binding>) {
        let before = match binding {
            Some(binding) => self.bound.insert(nic.clone(), binding),
            None => self.bound.remove(nic),
        };
        if before != binding {
            self.changed.insert(nic.clone());
        }
    }
}

impl BoundAddresses {
    /// Creates an empty table at the start of the daemon. `guest_reconnect_window`: see
    /// [`NodeDependencies`](crate::NodeDependencies).
    pub(crate) fn new(guest_reconnect_window: Duration) -> Self {
        Self { state: Mutex::default(), reconnected: Instant::now() + guest_reconnect_window }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the bindings that the previous daemon process recorded.
    ///
    /// # Errors
    /// The state store cannot be read.
    pub(crate) fn load(&self, store: &dyn StateStore) -> Result<(), StateStoreError> {
        let mut bound = BTreeMap::new();
        scan_all(store, NIC_ADDRESSES, &mut |key, value| {
            let stored: StoredAddress = decode(NIC_ADDRESSES, key, value)?;
            if let Ok(nic) = key.parse() {
                bound.insert(nic, Binding { mac: stored.mac, is_confirmed: false });
            }
            Ok(())
        })?;
        self.state().bound = bound;
        Ok(())
    }

    /// Returns the NICs with recently disconnected guests (see [`State::recently_left`]).
    pub(crate) fn recently_disconnected(&self) -> BTreeSet<Name> {
        self.state().recently_left.clone()
    }

    /// Removes NICs from the set of recently disconnected ones, after all notices of the plane
    /// about them were handled.
    pub(crate) fn clear_recently_disconnected(&self, nics: &BTreeSet<Name>) {
        self.state().recently_left.retain(|nic| !nics.contains(nic));
    }

    /// Returns the bindings in effect under `config`. A configured address takes precedence over a
    /// binding of the same address on the same switch; among equal bindings, the first NIC of
    /// `config` takes precedence.
    pub(crate) fn bindings_in_effect(&self, config: &HostConfig) -> BTreeMap<Name, Binding> {
        let state = self.state();
        if state.bound.is_empty() {
            return BTreeMap::new();
        }
        let configured = config.nics.iter().filter_map(|nic| Some((&nic.switch, nic.mac?)));
        let mut used: BTreeSet<(&Name, MacAddr)> = configured.collect();
        let nics = config.nics.iter().filter(|nic| binds_source(nic));
        nics.filter_map(|nic| {
            let binding = state.bound.get(&nic.name)?;
            used.insert((&nic.switch, binding.mac)).then(|| (nic.name.clone(), *binding))
        })
        .collect()
    }
}

/// Returns true if the first source address of the NIC's guest is bound to the NIC.
pub(crate) fn binds_source(nic: &NicConfig) -> bool {
    nic.mac.is_none() && !nic.mac_spoofing && nic.backend != NicBackend::Tap
}

fn stored(nic: &Name, binding: Option<&Binding>) -> Result<StoreChange, StateStoreError> {
    let entry = binding.map(|binding| StoredAddress { mac: binding.mac });
    let value = entry.map(|entry| encode(NIC_ADDRESSES, &entry)).transpose()?;
    Ok((NIC_ADDRESSES, nic.to_string(), value))
}

#[cfg(test)]
#[path = "bound_addresses_tests.rs"]
mod tests;
