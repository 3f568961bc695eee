//! Changes of bindings by the control thread.

use std::collections::BTreeSet;
use std::time::Instant;

use suimon_contract::{EventKind, HostConfig, Name, NicConfig};
use suimon_frame::MacAddr;
use suimon_ports::StateStoreError;
use suimon_quantity::PortId;

use super::{Binding, binds_source, stored};
use crate::PortKey;
use crate::control::Controller;
use crate::events::EventDraft;
use crate::ports::desired::find_using_switch;
use crate::state::StoreChange;

impl Controller {
    /// Records the connection of a guest. Releases a confirmed binding: it belongs to a former
    /// guest whose disconnection was not reported.
    pub(crate) fn record_guest_connected(&self, key: &PortKey) {
        let PortKey::Nic(nic) = key else { return };
        let mut state = self.shared.bound_addresses.state();
        state.connected.insert(nic.clone());
        if state.bound.get(nic).is_some_and(|binding| binding.is_confirmed) {
            state.set(nic, None);
        }
    }

    /// Records the disconnection of a guest or the closing of its device, and releases the NIC's
    /// address.
    pub(crate) fn record_guest_disconnected(&self, key: &PortKey) {
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
        if let Some(notices) = waiting {
            for notice in notices.take() {
                self.handle_single_notice(&notices, notice);
            }
        }
        let desired = self.shared.desired();
        let Some(nic) = nic_of(&desired.config, &port.key).filter(|nic| binds_source(nic)) else {
            return;
        };
        let in_effect = self.shared.bound_addresses.bindings_in_effect(&desired.config);
        let others = desired.config.nics.iter();
        let mut others =
            others.filter(|other| other.switch == nic.switch && other.name != nic.name);
        let bound =
            |other_nic: &NicConfig| in_effect.get(&other_nic.name).map(|binding| binding.mac);
        if others.any(|other| other.mac.or_else(|| bound(other)) == Some(mac)) {
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
        self.drafts
            .push(EventDraft::new(EventKind::NicAddressBound, &port.key, text).with("mac", mac));
    }

    /// Releases `mac` if its owner, a NIC on the switch of `port`, has no active guest: the guest
    /// has not reconnected within the time for reconnections, or its rings are stopped, as after a
    /// live migration to another NIC of this host. Returns true if the address was released.
    pub(crate) fn release_absent_owner(&self, port: PortId, mac: MacAddr) -> bool {
        let desired = self.shared.desired();
        let Some(port) = self.shared.ports.find_id(port) else { return false };
        let Some(switch) = switch_of_port(&desired.config, &port.key) else { return false };
        let in_effect = self.shared.bound_addresses.bindings_in_effect(&desired.config);
        let is_owner = |nic: &&NicConfig| {
            nic.switch == *switch
                && in_effect.get(&nic.name).is_some_and(|binding| binding.mac == mac)
        };
        let Some(owner) = desired.config.nics.iter().find(is_owner) else { return false };
        let device = self.shared.ports.find(&PortKey::Nic(owner.name.clone()));
        let runs =
            device.and_then(|port| port.device_status()).is_some_and(|status| status.link_up);
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
        state.connected.retain(|nic| desired.config.nics.iter().any(|config| config.name == *nic));
    }

    /// Writes changed bindings to the state store and publishes them. Called after all notices of a
    /// poll of the plane were handled.
    pub(crate) fn write_bindings(&self) {
        let changes: Result<Vec<StoreChange>, StateStoreError> = {
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

fn nic_of<'a>(config: &'a HostConfig, key: &PortKey) -> Option<&'a NicConfig> {
    let PortKey::Nic(name) = key else { return None };
    config.nics.iter().find(|nic| nic.name == *name)
}

fn switch_of_port<'a>(config: &'a HostConfig, key: &'a PortKey) -> Option<&'a Name> {
    match key {
        PortKey::Nic(_) => nic_of(config, key).map(|nic| &nic.switch),
        PortKey::HostNic(switch) => Some(switch),
        PortKey::Uplink(name) | PortKey::Team(name) => {
            find_using_switch(config, name).map(|switch| &switch.name)
        }
    }
}
