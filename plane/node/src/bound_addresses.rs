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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use suimon_contract::{EventKind, HostConfig, Name, NicBackend, NicConfig};
use suimon_frame::MacAddr;
use suimon_ports::{StateStore, StoreError};
use suimon_quantity::PortId;

use crate::PortKey;
use crate::control::Controller;
use crate::events::Draft;
use crate::records::{NIC_ADDRESSES, StoreChange, decode, encode, scan_all};
use crate::wanted::switch_of;

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
    /// address reported for one of them may be that of the former guest.
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
    /// Creates an empty table at the start of the daemon. `reconnect_max`: see
    /// [`NodeParts`](crate::NodeParts).
    pub(crate) fn new(reconnect_max: Duration) -> Self {
        Self { state: Mutex::default(), reconnected: Instant::now() + reconnect_max }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the bindings that the previous daemon process recorded.
    ///
    /// # Errors
    /// The state store cannot be read.
    pub(crate) fn load(&self, store: &dyn StateStore) -> Result<(), StoreError> {
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
    pub(crate) fn recently_left(&self) -> BTreeSet<Name> {
        self.state().recently_left.clone()
    }

    /// Removes NICs from the set of recently disconnected ones, after all notices of the plane
    /// about them were handled.
    pub(crate) fn forget_recently_left(&self, nics: &BTreeSet<Name>) {
        self.state().recently_left.retain(|nic| !nics.contains(nic));
    }

    /// Returns the bindings in effect under `config`. A configured address takes precedence over a
    /// binding of the same address on the same switch; among equal bindings, the first NIC of
    /// `config` takes precedence.
    pub(crate) fn in_effect(&self, config: &HostConfig) -> BTreeMap<Name, Binding> {
        let state = self.state();
        if state.bound.is_empty() {
            return BTreeMap::new();
        }
        let configured = config.nics.iter().filter_map(|nic| Some((&nic.switch, nic.mac?)));
        let mut taken: BTreeSet<(&Name, MacAddr)> = configured.collect();
        let nics = config.nics.iter().filter(|nic| binds_source(nic));
        nics.filter_map(|nic| {
            let binding = state.bound.get(&nic.name)?;
            taken.insert((&nic.switch, binding.mac)).then(|| (nic.name.clone(), *binding))
        })
        .collect()
    }
}

/// Returns true if the first source address of the NIC's guest is bound to the NIC.
pub(crate) fn binds_source(nic: &NicConfig) -> bool {
    nic.mac.is_none() && !nic.mac_spoofing && nic.backend != NicBackend::Tap
}

impl Controller {
    /// Records the connection of a guest. Releases a confirmed binding: it belongs to a former
    /// guest whose disconnection was not reported.
    pub(crate) fn note_connected(&self, key: &PortKey) {
        let PortKey::Nic(nic) = key else { return };
        let mut state = self.shared.bound_addresses.state();
        state.connected.insert(nic.clone());
        if state.bound.get(nic).is_some_and(|binding| binding.is_confirmed) {
            state.set(nic, None);
        }
    }

    /// Records the disconnection of a guest or the closing of its device, and releases the NIC's
    /// address.
    pub(crate) fn note_disconnected(&self, key: &PortKey) {
        let PortKey::Nic(nic) = key else { return };
        let mut state = self.shared.bound_addresses.state();
        if state.connected.remove(nic) {
            state.recently_left.insert(nic.clone());
        }
        state.set(nic, None);
    }

    /// Binds the first source address of the guest at `port`, unless the address belongs to another
    /// NIC of the switch.
    pub(crate) fn bind_source(&mut self, port: PortId, mac: MacAddr) {
        let Some(port) = self.shared.ports.find_id(port) else { return };
        // A device reports a guest before the guest can send: the notice is queued already and is
        // handled first.
        let waiting = port.lock().notices.clone();
        if let Some(of) = waiting {
            for notice in of.take() {
                self.handle_notice_of(&of, notice);
            }
        }
        let desired = self.shared.desired();
        let Some(nic) = nic_of(&desired.config, &port.key).filter(|nic| binds_source(nic)) else {
            return;
        };
        let in_effect = self.shared.bound_addresses.in_effect(&desired.config);
        let others = desired.config.nics.iter();
        let mut others = others.filter(|of| of.switch == nic.switch && of.name != nic.name);
        let bound = |of: &NicConfig| in_effect.get(&of.name).map(|binding| binding.mac);
        if others.any(|of| of.mac.or_else(|| bound(of)) == Some(mac)) {
            return;
        }
        let before = in_effect.get(&nic.name).copied();
        let mut state = self.shared.bound_addresses.state();
        let is_settled = before.is_some_and(|binding| binding.is_confirmed);
        // The guest may have disconnected after it sent.
        if is_settled || !state.connected.contains(&nic.name) {
            return;
        }
        let is_confirmed = !state.recently_left.contains(&nic.name);
        state.set(&nic.name, Some(Binding { mac, is_confirmed }));
        drop(state);
        if before.is_some_and(|binding| binding.mac == mac) {
            return;
        }
        let text = format!(
            "The source address {mac} was bound to this NIC: other NICs may not send from it. Set \
             `mac` to choose the address, or mac_spoofing = true to bind none."
        );
        self.drafts.push(Draft::new(EventKind::NicAddressBound, &port.key, text).with("mac", mac));
    }

    /// Releases `mac` if its owner, a NIC on the switch of `port`, has no active guest: the guest
    /// has not reconnected within the time for reconnections, or its rings are stopped, as after a
    /// live migration to another NIC of this host. Returns true if the address was released.
    pub(crate) fn release_absent_owner(&self, port: PortId, mac: MacAddr) -> bool {
        let desired = self.shared.desired();
        let Some(port) = self.shared.ports.find_id(port) else { return false };
        let Some(switch) = switch_of_port(&desired.config, &port.key) else { return false };
        let in_effect = self.shared.bound_addresses.in_effect(&desired.config);
        let is_owner = |nic: &&NicConfig| {
            nic.switch == *switch
                && in_effect.get(&nic.name).is_some_and(|binding| binding.mac == mac)
        };
        let Some(owner) = desired.config.nics.iter().find(is_owner) else { return false };
        let device = self.shared.ports.find(&PortKey::Nic(owner.name.clone()));
        let runs = device.and_then(|port| port.device_status()).is_some_and(|of| of.link_up);
        let bindings = &self.shared.bound_addresses;
        let mut state = bindings.state();
        let is_absent = if state.connected.contains(&owner.name) {
            !runs
        } else {
            Instant::now() >= bindings.reconnected
        };
        if is_absent {
            state.set(&owner.name, None);
        }
        is_absent
    }

    /// Releases the addresses of NICs that bind none under the desired configuration.
    pub(crate) fn prune_bindings(&self) {
        let desired = self.shared.desired();
        let nics = desired.config.nics.iter();
        let binding: BTreeSet<&Name> =
            nics.filter(|nic| binds_source(nic)).map(|nic| &nic.name).collect();
        let mut state = self.shared.bound_addresses.state();
        let stale: Vec<Name> =
            state.bound.keys().filter(|nic| !binding.contains(nic)).cloned().collect();
        for nic in stale {
            state.set(&nic, None);
        }
        state.connected.retain(|nic| desired.config.nics.iter().any(|of| of.name == *nic));
    }

    /// Writes changed bindings to the state store and publishes them. Called after all notices of a
    /// poll of the plane were handled.
    pub(crate) fn write_bindings(&self) {
        let changes: Result<Vec<StoreChange>, StoreError> = {
            let mut state = self.shared.bound_addresses.state();
            let changed = std::mem::take(&mut state.changed);
            changed.iter().map(|nic| stored(nic, state.bound.get(nic))).collect()
        };
        if changes.as_ref().is_ok_and(Vec::is_empty) {
            return;
        }
        if let Err(error) = changes.and_then(|changes| self.store.commit(&changes)) {
            // The bindings are in effect; only the next daemon process does not have them.
            tracing::warn!(%error, "cannot record the addresses bound to NICs");
        }
        self.publish_desired();
    }
}

fn stored(nic: &Name, binding: Option<&Binding>) -> Result<StoreChange, StoreError> {
    let entry = binding.map(|binding| StoredAddress { mac: binding.mac });
    let value = entry.map(|entry| encode(NIC_ADDRESSES, &entry)).transpose()?;
    Ok((NIC_ADDRESSES, nic.to_string(), value))
}

fn nic_of<'a>(config: &'a HostConfig, key: &PortKey) -> Option<&'a NicConfig> {
    let PortKey::Nic(name) = key else { return None };
    config.nics.iter().find(|nic| nic.name == *name)
}

fn switch_of_port<'a>(config: &'a HostConfig, key: &'a PortKey) -> Option<&'a Name> {
    match key {
        PortKey::Nic(_) => nic_of(config, key).map(|nic| &nic.switch),
        PortKey::HostNic(switch) => Some(switch),
        PortKey::Uplink(name) | PortKey::Team(name) => {
            switch_of(config, name).map(|switch| &switch.name)
        }
    }
}

#[cfg(test)]
#[path = "bound_addresses_tests.rs"]
mod tests;
