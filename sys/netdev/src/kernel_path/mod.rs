//! Kernel path: the kernel forwards frames between TAPs without the switch.
//!
//! A frame that this process forwards from one TAP to another is copied two more times than one
//! that the kernel forwards. [`KernelPaths`] makes the kernel forward the frames that a
//! [`KernelPathTable`] of the node permits; all others pass through the TAP and the switch.
//! [`programs`] describes the devices and programs.
//!
//! This module makes no policy decisions: the table determines permitted senders and receivers.
//!
//! Life cycle: [`KernelPaths::attach`] adds a veth pair and the programs to a TAP; the kernel
//! forwards none of its frames until a table contains the port. Dropping the [`TapKernelPath`]
//! removes the pair and the programs. Those of a killed process are removed when its TAP is next
//! opened or deleted; until then the kernel continues with the last table.

mod programs;
mod veth;

pub(crate) use veth::remove_pair;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use suimon_bpf::{Map, MapType};
use suimon_frame::MacAddr;
use suimon_ports::{
    DeviceError, DeviceErrorKind, KERNEL_PATH_REPORT_INTERVAL, KernelPathAddress,
    KernelPathCounters, KernelPathPort, KernelPathTable,
};
use suimon_quantity::PortId;

use crate::errors::{device_error, host_error};
use crate::link::Link;
use crate::namespace::{DAEMON_NETNS, Namespace};

use self::veth::CONFIG_KEY;
use programs::{ADDRESS_BYTES, ADDRESS_KEY_BYTES, COUNTERS_BYTES, GATE_BYTES, MapFds};

const SLOTS: u32 = 4096;
const ADDRESSES_MAX: u32 = 65_536;
/// Maximum number of ports without a device whose counters are kept.
const FORMER_COUNTERS_MAX: usize = 4 * SLOTS as usize;

/// Kernel paths of this process's TAPs. Clones share the same state.
#[derive(Clone, Default)]
pub(crate) struct KernelPaths(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Maps that the programs read; created for the first port with a kernel path.
    maps: Option<Arc<Maps>>,
    ports: BTreeMap<PortId, Slot>,
    /// Contents of the map of gates, by slot. A port without an entry has a closed gate.
    gates: BTreeMap<u32, Gate>,
    addresses: BTreeMap<(u32, MacAddr), AddressEntry>,
    renewed_at: Option<Instant>,
    /// Sum of the counters of the devices that a port has had, without the open one. Beyond
    /// [`FORMER_COUNTERS_MAX`] entries, that of the lowest port is removed: ids ascend, so that it
    /// most likely belongs to a deleted NIC.
    former_counters: BTreeMap<PortId, KernelPathCounters>,
}

struct Maps {
    gates: Map<4, GATE_BYTES>,
    addresses: Map<ADDRESS_KEY_BYTES, ADDRESS_BYTES>,
    counters: Map<4, COUNTERS_BYTES>,
}

/// Slot of a port: its index in the maps, and the interface index of its veth end in this process's
/// namespace, once that exists.
#[derive(Clone, Copy, Debug)]
struct Slot {
    number: u32,
    veth: Option<u32>,
}

/// Settings of a port whose frames the kernel may forward, and the interface index of its veth end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gate {
    port: KernelPathPort,
    veth: u32,
}

/// Slot of the port at which a MAC address is reachable, and whether the address is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AddressEntry {
    slot: u32,
    fixed: bool,
}

/// Kernel path of one TAP: its veth pair and programs, removed on drop.
pub(crate) struct TapKernelPath {
    paths: KernelPaths,
    port: PortId,
    slot: u32,
    namespace: Namespace,
    tap: u32,
}

impl Maps {
    fn new() -> io::Result<Self> {
        Ok(Self {
            gates: Map::new(MapType::Array, SLOTS)?,
            addresses: Map::new(MapType::Hash, ADDRESSES_MAX)?,
            counters: Map::new(MapType::Array, SLOTS)?,
        })
    }

    fn open(&self, slot: u32, gate: Gate) -> io::Result<()> {
        let mut value = [0; GATE_BYTES];
        put(&mut value, 0, gate.port.group);
        put(&mut value, 4, gate.veth);
        put(&mut value, 8, gate.port.is_learning.into());
        put(&mut value, 12, gate.port.mtu.into());
        self.gates.set(&slot.to_ne_bytes(), &value)
    }

    fn close(&self, slot: u32) {
        // The entry exists as long as the map.
        let _ = self.gates.set(&slot.to_ne_bytes(), &[0; GATE_BYTES]);
    }

    fn insert(&self, address: &(u32, MacAddr), entry: AddressEntry) -> io::Result<()> {
        let mut value = [0; ADDRESS_BYTES];
        put(&mut value, 0, entry.slot);
        put(&mut value, 4, entry.fixed.into());
        self.addresses.set(&address_key(address), &value)
    }

    /// Returns true if the kernel has forwarded frames from this address since the entry was
    /// inserted.
    fn has_sent_frames(&self, address: &(u32, MacAddr)) -> bool {
        let value = self.addresses.value(&address_key(address));
        value.is_some_and(|value| value.iter().skip(8).any(|byte| *byte != 0))
    }

    fn fds(&self) -> MapFds {
        MapFds {
            gates: self.gates.descriptor(),
            addresses: self.addresses.descriptor(),
            counters: self.counters.descriptor(),
        }
    }
}

impl KernelPaths {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a veth pair for the TAP `tap`, and attaches the programs. The port's gate stays
    /// closed until a table contains the port.
    ///
    /// # Errors
    /// Nothing is attached: the TAP is in this process's namespace, or the kernel rejected a step.
    pub(crate) fn attach(
        &self,
        port: PortId,
        namespace: &Namespace,
        tap: &str,
    ) -> Result<TapKernelPath, DeviceError> {
        if namespace.is_daemon_netns() {
            return Err(device_error(
                DeviceErrorKind::Unsupported,
                CONFIG_KEY,
                "the TAP device is in the daemon's own network namespace, and the kernel path \
                 forwards only between other namespaces; set `netns`",
            ));
        }
        let maps = self.maps()?;
        let daemon_netns =
            rustix::fs::open(DAEMON_NETNS, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|errno| {
                    host_error(CONFIG_KEY, "opening the daemon's network namespace", &errno.into())
                })?;
        let tap = namespace.run(|| {
            let index = Link::new(tap)?.index()?;
            remove_pair(index);
            Ok(index)
        })?;
        // From here on, dropping the attachment removes what was created.
        let slot = self.take_slot(port)?;
        let (paths, namespace) = (self.clone(), namespace.clone());
        let attachment = TapKernelPath { paths, port, slot, namespace, tap };
        let guest_namespace = &attachment.namespace;
        let veth = guest_namespace.run(|| veth::create(tap, &daemon_netns))?;
        veth::attach_daemon_end(maps.fds(), slot, veth.peer_index)?;
        guest_namespace.run(|| veth::connect_pair(maps.fds(), slot, tap, veth.index))?;
        if let Some(port) = self.lock().ports.get_mut(&port) {
            port.veth = Some(veth.peer_index);
        }
        Ok(attachment)
    }

    /// Reserves a slot for a port. Its counters are zero and its gate is closed.
    fn take_slot(&self, port: PortId) -> Result<u32, DeviceError> {
        let mut state = self.lock();
        let used: BTreeSet<u32> = state.ports.values().map(|slot| slot.number).collect();
        let Some(number) = (0..SLOTS).find(|number| !used.contains(number)) else {
            let detail =
                format!("{SLOTS} TAP devices already have a kernel path, the most possible");
            return Err(device_error(DeviceErrorKind::Unsupported, CONFIG_KEY, detail));
        };
        state.ports.insert(port, Slot { number, veth: None });
        Ok(number)
    }

    /// Makes the kernel forward the frames that `table` permits, and no others, from the return of
    /// the call on. Ports without an attachment are skipped. Once per
    /// [`KERNEL_PATH_REPORT_INTERVAL`], returns the addresses from which the kernel has forwarded
    /// frames since the previous report, each with its group; otherwise an empty list.
    ///
    /// # Errors
    /// The kernel has no space for the whole table; frames of missing entries pass through the
    /// switch.
    pub(crate) fn set_table(
        &self,
        table: &KernelPathTable,
    ) -> Result<Vec<(u32, MacAddr)>, DeviceError> {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(maps) = &state.maps else { return Ok(Vec::new()) };
        let ports = &state.ports;
        let gate = |(id, port): (&PortId, &KernelPathPort)| {
            let slot = ports.get(id)?;
            Some((slot.number, Gate { port: *port, veth: slot.veth? }))
        };
        let gates: BTreeMap<_, _> = table.ports.iter().filter_map(gate).collect();
        let to_entry = |(key, address): (&(u32, MacAddr), &KernelPathAddress)| {
            Some((
                *key,
                AddressEntry { slot: ports.get(&address.port)?.number, fixed: address.is_static },
            ))
        };
        let addresses: BTreeMap<_, _> = table.addresses.iter().filter_map(to_entry).collect();
        // Permissions are revoked before new ones are granted.
        state.gates.retain(|slot, gate| {
            let is_unchanged = gates.get(slot) == Some(gate);
            if !is_unchanged {
                maps.close(*slot);
            }
            is_unchanged
        });
        state.addresses.retain(|address, entry| {
            let is_unchanged = addresses.get(address) == Some(entry);
            if !is_unchanged {
                maps.addresses.remove(&address_key(address));
            }
            is_unchanged
        });
        // The maps are also rewritten periodically: the programs remove addresses that move,
        // including those that may not move in the end.
        let renews =
            state.renewed_at.is_none_or(|renewed| renewed.elapsed() >= KERNEL_PATH_REPORT_INTERVAL);
        let mut active = Vec::new();
        if renews {
            state.renewed_at = Some(Instant::now());
            let candidates = state.addresses.keys().copied();
            active.extend(candidates.filter(|address| maps.has_sent_frames(address)));
        }
        let mut first_failure = None;
        for (address, entry) in addresses {
            if renews || !state.addresses.contains_key(&address) {
                match maps.insert(&address, entry) {
                    Ok(()) => drop(state.addresses.insert(address, entry)),
                    Err(cause) => drop(first_failure.get_or_insert(cause)),
                }
            }
        }
        for (slot, gate) in gates {
            if let Entry::Vacant(vacant) = state.gates.entry(slot) {
                match maps.open(slot, gate) {
                    Ok(()) => drop(vacant.insert(gate)),
                    Err(cause) => drop(first_failure.get_or_insert(cause)),
                }
            }
        }
        match first_failure {
            None => Ok(active),
            Some(cause) => {
                Err(host_error(CONFIG_KEY, "writing the addresses of the kernel path", &cause))
            }
        }
    }

    /// Returns the counters of frames that a port has sent and received on the kernel path,
    /// including those of its former devices.
    pub(crate) fn counters(&self, port: PortId) -> KernelPathCounters {
        let state = self.lock();
        let former = state.former_counters.get(&port).copied().unwrap_or_default();
        let slot = state.ports.get(&port).map(|slot| slot.number);
        let value = slot.zip(state.maps.as_ref());
        match value.and_then(|(slot, maps)| maps.counters.value(&slot.to_ne_bytes())) {
            Some(value) => sum(former, &value),
            None => former,
        }
    }

    fn maps(&self) -> Result<Arc<Maps>, DeviceError> {
        let mut state = self.lock();
        if let Some(maps) = &state.maps {
            return Ok(Arc::clone(maps));
        }
        let maps =
            Maps::new().map_err(|cause| host_error(CONFIG_KEY, "creating a BPF map", &cause))?;
        Ok(Arc::clone(state.maps.insert(Arc::new(maps))))
    }
}

impl Drop for TapKernelPath {
    fn drop(&mut self) {
        // First, frames for this port pass through the switch again.
        self.paths.lock().close(self.slot);
        let tap = self.tap;
        let detached = self.namespace.run(|| {
            veth::remove_pair(tap);
            Ok(())
        });
        if let Err(error) = detached {
            tracing::debug!(%error, "a kernel path was removed with its namespace");
        }
        let counters = self.paths.counters(self.port);
        self.paths.lock().release(self.port, self.slot, counters);
    }
}

impl State {
    fn close(&mut self, slot: u32) {
        self.gates.remove(&slot);
        let Some(maps) = &self.maps else { return };
        maps.close(slot);
        self.addresses.retain(|address, entry| {
            let is_other = entry.slot != slot;
            if !is_other {
                maps.addresses.remove(&address_key(address));
            }
            is_other
        });
    }

    /// Makes a slot available to another port. Saves `counters`, which are the slot's, for `port`,
    /// and clears them in the map.
    fn release(&mut self, port: PortId, slot: u32, counters: KernelPathCounters) {
        self.former_counters.insert(port, counters);
        while self.former_counters.len() > FORMER_COUNTERS_MAX {
            self.former_counters.pop_first();
        }
        let Some(maps) = &self.maps else { return };
        if maps.counters.set(&slot.to_ne_bytes(), &[0; COUNTERS_BYTES]).is_ok() {
            self.ports.remove(&port);
        }
    }
}

/// Returns the sum of `former` and the counters in a value of the map.
fn sum(former: KernelPathCounters, value: &[u8; COUNTERS_BYTES]) -> KernelPathCounters {
    let counter_at = |offset: usize| {
        let eight = value.get(offset..).and_then(|rest| rest.first_chunk().copied());
        eight.map_or(0, u64::from_ne_bytes)
    };
    KernelPathCounters {
        sent_frames: former.sent_frames.wrapping_add(counter_at(0)),
        sent_bytes: former.sent_bytes.wrapping_add(counter_at(8)),
        received_frames: former.received_frames.wrapping_add(counter_at(16)),
        received_bytes: former.received_bytes.wrapping_add(counter_at(24)),
    }
}

fn address_key((group, mac): &(u32, MacAddr)) -> [u8; ADDRESS_KEY_BYTES] {
    let mut key = [0; ADDRESS_KEY_BYTES];
    put(&mut key, 0, *group);
    key.iter_mut().skip(4).zip(mac.octets()).for_each(|(to, from)| *to = from);
    key
}

fn put(bytes: &mut [u8], offset: usize, value: u32) {
    bytes.iter_mut().skip(offset).zip(value.to_ne_bytes()).for_each(|(to, from)| *to = from);
}

#[cfg(test)]
mod tests;
