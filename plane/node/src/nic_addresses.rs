//! Addresses of NICs without `mac` in the configuration.
//!
//! TAP NICs and NICs of VMs are given a random address when they are added ([`assign_addresses`]). It is
//! part of the desired configuration from then on, as if it had been configured.
//!
//! Other NICs learn the addresses of their guests. The first source address that the guest of a NIC without `mac` and `mac_spoofing` sends from is bound
//! to the NIC. The switch then drops frames from this address that other NICs send. A binding ends when
//! the guest disconnects, when `mac` or `mac_spoofing` is configured, and when the NIC is deleted. It is
//! kept in the state store: after a restart of the daemon, guests keep their addresses whoever sends
//! first.

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
use crate::disks::RandomSource;
use crate::events::Draft;
use crate::records::{NIC_ADDRESSES, StoreChange, decode, encode, scan_all};
use crate::wanted::switch_of;

/// Entry of the table [`NIC_ADDRESSES`] of the state store.
#[derive(Serialize, Deserialize)]
struct StoredAddress {
    mac: MacAddr,
}

/// The recorded bindings. At most one per NIC of the configuration.
pub(crate) struct BoundAddresses {
    of: Mutex<BTreeMap<Name, MacAddr>>,
    /// Before this, guests of the former daemon may not have reconnected yet, and keep their bindings.
    reconnected: Instant,
}

impl BoundAddresses {
    /// No bindings, of a daemon that starts now.
    pub(crate) fn new(reconnect_max: Duration) -> Self {
        Self { of: Mutex::default(), reconnected: Instant::now() + reconnect_max }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Name, MacAddr>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the bindings that the last daemon recorded.
    ///
    /// # Errors
    /// The state store cannot be read.
    pub(crate) fn load(&self, store: &dyn StateStore) -> Result<(), StoreError> {
        let mut bound = BTreeMap::new();
        scan_all(store, NIC_ADDRESSES, &mut |key, value| {
            let stored: StoredAddress = decode(NIC_ADDRESSES, key, value)?;
            if let Ok(nic) = key.parse() {
                bound.insert(nic, stored.mac);
            }
            Ok(())
        })?;
        *self.all() = bound;
        Ok(())
    }

    /// Returns the bindings in effect under `config`. A configured address takes precedence over a
    /// binding of the same address on the same switch, and the first NIC of `config` over others.
    pub(crate) fn in_effect(&self, config: &HostConfig) -> BTreeMap<Name, MacAddr> {
        let bound = self.all();
        if bound.is_empty() {
            return BTreeMap::new();
        }
        let configured = config.nics.iter().filter_map(|nic| Some((&nic.switch, nic.mac?)));
        let mut taken: BTreeSet<(&Name, MacAddr)> = configured.collect();
        let binding = |nic: &NicConfig| bound.get(&nic.name).copied();
        let nics = config.nics.iter().filter(|nic| binds_source(nic));
        nics.filter_map(|nic| {
            let mac = binding(nic)?;
            taken.insert((&nic.switch, mac)).then(|| (nic.name.clone(), mac))
        })
        .collect()
    }
}

/// Time between two releases of addresses of one NIC. Each release and each binding publishes the tables
/// and writes to the state store; a guest that connects again and again is not to make that frequent.
const RELEASE_EVERY: Duration = Duration::from_secs(10);

/// When bindings may be released. At most one entry per NIC of the configuration.
#[derive(Debug, Default)]
pub(crate) struct Releases {
    /// Earliest time of the next release, by NIC.
    next: BTreeMap<Name, Instant>,
    /// NICs whose release was put off until then.
    put_off: BTreeSet<Name>,
}

impl Releases {
    /// Returns true if an address of the NIC may be released now. Otherwise [`Releases::due`] returns the
    /// NIC when it may.
    fn is_permitted(&mut self, nic: &Name, now: Instant) -> bool {
        if self.next.get(nic).is_some_and(|next| now < *next) {
            self.put_off.insert(nic.clone());
            return false;
        }
        self.next.insert(nic.clone(), now + RELEASE_EVERY);
        true
    }

    /// Returns the NICs whose releases were put off and are permitted now.
    fn due(&mut self, now: Instant) -> Vec<Name> {
        let is_due = |nic: &Name| self.next.get(nic).is_none_or(|next| now >= *next);
        let due: Vec<Name> = self.put_off.iter().filter(|nic| is_due(nic)).cloned().collect();
        for nic in &due {
            self.put_off.remove(nic);
            self.next.insert(nic.clone(), now + RELEASE_EVERY);
        }
        due
    }

    fn retain(&mut self, keep: impl Fn(&Name) -> bool) {
        self.next.retain(|nic, _| keep(nic));
        self.put_off.retain(|nic| keep(nic));
    }
}

/// Returns true if the first source address of the NIC's guest is bound to the NIC.
pub(crate) fn binds_source(nic: &NicConfig) -> bool {
    nic.mac.is_none() && !nic.mac_spoofing && nic.backend != NicBackend::Tap
}

/// Returns true if the NIC has an address that the daemon chooses unless it is configured: the one that
/// the kernel's side of a TAP has, or QEMU's device in a VM.
fn has_chosen_address(config: &HostConfig, nic: &NicConfig) -> bool {
    nic.backend == NicBackend::Tap || config.vms.iter().any(|vm| vm.nics.contains(&nic.name))
}

/// Gives an address to each NIC of `config` that needs one and has none. A NIC keeps the address that it
/// has in `current`. One that has none there although it needs one keeps none: its guest uses an address
/// already that is not known.
pub(crate) fn assign_addresses(
    config: &mut HostConfig,
    current: &HostConfig,
    random: &RandomSource,
) {
    let mut taken: BTreeSet<MacAddr> = config.nics.iter().filter_map(|nic| nic.mac).collect();
    for at in 0..config.nics.len() {
        let nic = &config.nics[at];
        if nic.mac.is_some() || !has_chosen_address(config, nic) {
            continue;
        }
        let before = current.nics.iter().find(|before| before.name == nic.name);
        let mac = match before {
            Some(NicConfig { mac: Some(mac), .. }) if !taken.contains(mac) => *mac,
            Some(before) if before.mac.is_none() && has_chosen_address(current, before) => continue,
            _ => random_address(&taken, random),
        };
        taken.insert(mac);
        config.nics[at].mac = Some(mac);
    }
}

/// Returns a locally administered station address (IEEE 802-2014, 8.4) that is not in `taken`.
fn random_address(taken: &BTreeSet<MacAddr>, random: &RandomSource) -> MacAddr {
    let [first, second, rest @ ..] = random();
    let low = u32::from_be_bytes([rest[0], rest[1], rest[2], rest[3]]);
    let address = |attempt: u32| {
        let [a, b, c, d] = low.wrapping_add(attempt).to_be_bytes();
        MacAddr::new([first & 0xfc | 2, second, a, b, c, d])
    };
    // There are far fewer NICs than addresses.
    (0..u32::MAX).map(address).find(|mac| !taken.contains(mac)).unwrap_or(address(0))
}

impl Controller {
    /// Binds an address to the NIC at `port`, unless the NIC has one or another NIC of its switch has
    /// this one. Returns true if the tables have to be published.
    pub(crate) fn bind_source(&mut self, port: PortId, mac: MacAddr) -> bool {
        let Some(port) = self.shared.ports.find_id(port) else { return false };
        let state = self.shared.desired();
        let Some(nic) = nic_of(&state.config, &port.key).filter(|nic| binds_source(nic)) else {
            return false;
        };
        let bound = self.shared.bound_addresses.in_effect(&state.config);
        let on_switch = state.config.nics.iter().filter(|other| other.switch == nic.switch);
        let mut addresses =
            on_switch.filter_map(|other| other.mac.or_else(|| bound.get(&other.name).copied()));
        if bound.contains_key(&nic.name) || addresses.any(|other| other == mac) {
            return false;
        }
        self.shared.bound_addresses.all().insert(nic.name.clone(), mac);
        self.record_binding(&nic.name, Some(mac));
        let text = format!(
            "The address {mac} is bound to the NIC: other NICs may not send from it. Configure mac to \
             choose the address, or mac_spoofing = true to bind none."
        );
        self.drafts.push(Draft::new(EventKind::NicAddressBound, &port.key, text).with("mac", mac));
        true
    }

    /// Releases the address bound to a NIC whose guest has disconnected, now or soon. Returns true if
    /// the tables have to be published.
    pub(crate) fn release_disconnected(&mut self, key: &PortKey) -> bool {
        let PortKey::Nic(name) = key else { return false };
        self.shared.bound_addresses.all().contains_key(name)
            && self.releases.is_permitted(name, Instant::now())
            && self.release_source(key)
    }

    /// Makes releases that were put off. Returns true if the tables have to be published.
    pub(crate) fn release_due(&mut self) -> bool {
        let due = self.releases.due(Instant::now());
        let released =
            due.into_iter().filter(|nic| self.release_source(&PortKey::Nic(nic.clone())));
        released.count() > 0
    }

    /// Releases the address bound to a NIC. Returns true if the tables have to be published.
    pub(crate) fn release_source(&mut self, key: &PortKey) -> bool {
        let PortKey::Nic(name) = key else { return false };
        let is_released = self.shared.bound_addresses.all().remove(name).is_some();
        if is_released {
            self.record_binding(name, None);
        }
        is_released
    }

    /// Releases `mac` if it is bound to a NIC on the switch of `port` whose guest is not connected, as
    /// after the guest was attached to another NIC while no daemon ran. Returns true if the tables have
    /// to be published.
    pub(crate) fn release_absent_owner(&mut self, port: PortId, mac: MacAddr) -> bool {
        let state = self.shared.desired();
        let bound = self.shared.bound_addresses.in_effect(&state.config);
        let Some(port) = self.shared.ports.find_id(port) else { return false };
        let Some(switch) = switch_of_port(&state.config, &port.key) else { return false };
        let mut nics = state.config.nics.iter().filter(|nic| nic.switch == *switch);
        let owner = nics.find(|nic| bound.get(&nic.name) == Some(&mac));
        let Some(owner) = owner.map(|nic| PortKey::Nic(nic.name.clone())) else { return false };
        if Instant::now() < self.shared.bound_addresses.reconnected {
            return false;
        }
        let device = self.shared.ports.find(&owner).and_then(|port| port.device_status());
        if device.is_some_and(|device| device.link_up) {
            return false;
        }
        self.release_source(&owner)
    }

    /// Removes bindings of NICs that bind no address under the desired configuration.
    pub(crate) fn prune_bindings(&mut self) {
        let state = self.shared.desired();
        let binding: BTreeSet<&Name> =
            state.config.nics.iter().filter(|nic| binds_source(nic)).map(|nic| &nic.name).collect();
        let stale: Vec<Name> = {
            let bound = self.shared.bound_addresses.all();
            bound.keys().filter(|name| !binding.contains(name)).cloned().collect()
        };
        for name in stale {
            self.release_source(&PortKey::Nic(name));
        }
        self.releases.retain(|name| state.config.nics.iter().any(|nic| nic.name == *name));
    }

    fn record_binding(&self, nic: &Name, mac: Option<MacAddr>) {
        if let Err(error) = stored(nic, mac).and_then(|change| self.store.commit(&[change])) {
            // In effect all the same; the next daemon binds the guest's next source address.
            tracing::warn!(%error, nic = %nic, "the address bound to a NIC was not recorded");
        }
    }
}

fn stored(nic: &Name, mac: Option<MacAddr>) -> Result<StoreChange, StoreError> {
    let value = mac.map(|mac| encode(NIC_ADDRESSES, &StoredAddress { mac })).transpose()?;
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
#[path = "nic_addresses_tests.rs"]
mod tests;
