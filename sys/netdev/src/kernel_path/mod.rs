//! A way past the switch: the kernel itself moves frames between TAPs.
//!
//! A frame that goes from one TAP to another through a program is copied twice more than
//! one that the kernel passes on. [`KernelPaths`] lets it do that for the frames of which
//! the node says so; all others take the way through the TAP as before. [`programs`] has
//! the picture.
//!
//! What it does not do: it decides nothing. Who may send to whom is in a
//! [`KernelPathTable`], and what is not in there takes the way through the switch.
//!
//! Lifecycle: [`KernelPaths::attach`] puts a pair of veth and the programs at a TAP;
//! nothing takes the way until a table names the port. Dropping the [`Attachment`] takes
//! all of it away. What a killed process left is taken away when its TAP is opened or
//! deleted the next time; until then the kernel goes on as it was told last.

mod programs;
pub(crate) mod requests;
mod way;

pub(crate) use way::take_away;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use suimon_frame::MacAddr;
use suimon_ports::{
    DeviceError, DeviceErrorKind, KERNEL_PATH_HEARD_EVERY, KernelPathAddress, KernelPathCounters,
    KernelPathPort, KernelPathTable,
};
use suimon_quantity::PortId;

use crate::explain::{error, host};
use crate::link::Link;
use crate::namespace::{Namespace, OURS};

use crate::bpf::{Kind, Map};
use programs::{ADDRESS_BYTES, ADDRESS_KEY_BYTES, COUNTERS_BYTES, GATE_BYTES, MapFds};

const SLOTS: u32 = 4096;
const ADDRESSES_MAX: u32 = 65_536;
const FIELD: &str = "kernel_path";

/// The kernel paths of this process' TAPs. Clones are handles on the same.
#[derive(Clone, Default)]
pub(crate) struct KernelPaths(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Made when the first port asks.
    maps: Option<Arc<Maps>>,
    ports: BTreeMap<PortId, Slot>,
    /// What the maps hold: gates by slot, and who is where.
    gates: BTreeMap<u32, Gate>,
    addresses: BTreeMap<(u32, MacAddr), Place>,
    renewed_at: Option<Instant>,
    /// What ports counted whose devices were closed since.
    counted: BTreeMap<PortId, KernelPathCounters>,
}

struct Maps {
    gates: Map<4, GATE_BYTES>,
    addresses: Map<ADDRESS_KEY_BYTES, ADDRESS_BYTES>,
    counters: Map<4, COUNTERS_BYTES>,
}

/// What programs know a port by, and the end of its way in our namespace once there is
/// one.
#[derive(Clone, Copy, Debug)]
struct Slot {
    number: u32,
    way: Option<u32>,
}

/// An open gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gate {
    port: KernelPathPort,
    way: u32,
}

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    slot: u32,
    fixed: bool,
}

/// What is attached to one TAP.
pub(crate) struct Attachment {
    paths: KernelPaths,
    port: PortId,
    slot: u32,
    namespace: Namespace,
    tap: u32,
}

impl Maps {
    fn new() -> io::Result<Self> {
        Ok(Self {
            gates: Map::new(Kind::Array, SLOTS)?,
            addresses: Map::new(Kind::Hash, ADDRESSES_MAX)?,
            counters: Map::new(Kind::Array, SLOTS)?,
        })
    }

    fn open(&self, slot: u32, gate: Gate) -> io::Result<()> {
        let mut value = [0; GATE_BYTES];
        put(&mut value, 0, gate.port.group);
        put(&mut value, 4, gate.way);
        put(&mut value, 8, gate.port.learns.into());
        put(&mut value, 12, gate.port.mtu.into());
        self.gates.set(&slot.to_ne_bytes(), &value)
    }

    fn close(&self, slot: u32) {
        // The entry is there as long as the map is.
        let _ = self.gates.set(&slot.to_ne_bytes(), &[0; GATE_BYTES]);
    }

    fn place(&self, address: &(u32, MacAddr), place: Place) -> io::Result<()> {
        let mut value = [0; ADDRESS_BYTES];
        put(&mut value, 0, place.slot);
        put(&mut value, 4, place.fixed.into());
        self.addresses.set(&address_key(address), &value)
    }

    /// Whether frames from there took the path since it was placed.
    fn has_sent(&self, address: &(u32, MacAddr)) -> bool {
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

    /// Attaches to the TAP of this name; its gate is closed until a table opens it.
    ///
    /// # Errors
    /// Nothing is attached: the namespace is ours, or the kernel refuses.
    pub(crate) fn attach(
        &self,
        port: PortId,
        namespace: &Namespace,
        tap: &str,
    ) -> Result<Attachment, DeviceError> {
        if namespace.is_ours() {
            return Err(error(
                DeviceErrorKind::Unsupported,
                FIELD,
                "the TAP is in the daemon's own network namespace; the kernel moves frames \
                 between other namespaces only: set `netns`",
            ));
        }
        let maps = self.maps()?;
        let ours = rustix::fs::open(OURS, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| host(FIELD, "opening our namespace", &errno.into()))?;
        let tap = namespace.run(|| {
            let index = Link::new(tap)?.index()?;
            take_away(index);
            Ok(index)
        })?;
        // From here on what was made goes away with it.
        let slot = self.take_slot(port)?;
        let (paths, namespace) = (self.clone(), namespace.clone());
        let attachment = Attachment { paths, port, slot, namespace, tap };
        let inside = &attachment.namespace;
        let way = inside.run(|| way::make(tap, &ours))?;
        way::guard(maps.fds(), slot, way.other)?;
        inside.run(|| way::connect(maps.fds(), slot, tap, way.index))?;
        if let Some(port) = self.lock().ports.get_mut(&port) {
            port.way = Some(way.other);
        }
        Ok(attachment)
    }

    /// A slot whose counters are nought and whose gate is closed.
    fn take_slot(&self, port: PortId) -> Result<u32, DeviceError> {
        let mut state = self.lock();
        let taken: BTreeSet<u32> = state.ports.values().map(|slot| slot.number).collect();
        let Some(number) = (0..SLOTS).find(|number| !taken.contains(number)) else {
            let detail = format!("{SLOTS} TAPs have a path in the kernel already");
            return Err(error(DeviceErrorKind::Unsupported, FIELD, detail));
        };
        state.ports.insert(port, Slot { number, way: None });
        Ok(number)
    }

    /// Has the kernel move what this table says, and nothing else, as soon as this
    /// returns. Ports without an attachment are left out. Every few seconds it returns the
    /// addresses, by group, from which frames took the path since.
    ///
    /// # Errors
    /// The kernel has no room for all of it; what is missing goes through the switch.
    pub(crate) fn set(&self, table: &KernelPathTable) -> Result<Vec<(u32, MacAddr)>, DeviceError> {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(maps) = &state.maps else { return Ok(Vec::new()) };
        let ports = &state.ports;
        let gate = |(id, port): (&PortId, &KernelPathPort)| {
            let slot = ports.get(id)?;
            Some((slot.number, Gate { port: *port, way: slot.way? }))
        };
        let gates: BTreeMap<_, _> = table.ports.iter().filter_map(gate).collect();
        let place = |(key, at): (&(u32, MacAddr), &KernelPathAddress)| {
            Some((*key, Place { slot: ports.get(&at.port)?.number, fixed: at.fixed }))
        };
        let addresses: BTreeMap<_, _> = table.addresses.iter().filter_map(place).collect();
        // First nothing may pass any more that should not, then what should may.
        state.gates.retain(|slot, gate| {
            let stays = gates.get(slot) == Some(gate);
            if !stays {
                maps.close(*slot);
            }
            stays
        });
        state.addresses.retain(|address, place| {
            let stays = addresses.get(address) == Some(place);
            if !stays {
                maps.addresses.remove(&address_key(address));
            }
            stays
        });
        // What the maps should hold is written again now and then, too: the programs
        // forget addresses that move, also those that in the end may not move.
        let renews = state.renewed_at.is_none_or(|at| at.elapsed() >= KERNEL_PATH_HEARD_EVERY);
        let mut heard = Vec::new();
        if renews {
            state.renewed_at = Some(Instant::now());
            let known = state.addresses.keys().copied();
            heard.extend(known.filter(|address| maps.has_sent(address)));
        }
        let mut first_failure = None;
        for (address, place) in addresses {
            if renews || !state.addresses.contains_key(&address) {
                match maps.place(&address, place) {
                    Ok(()) => drop(state.addresses.insert(address, place)),
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
            None => Ok(heard),
            Some(cause) => Err(host(FIELD, "telling the kernel who is where", &cause)),
        }
    }

    /// What took the kernel's path from and to a port, also while it had another device.
    pub(crate) fn counters(&self, port: PortId) -> KernelPathCounters {
        let state = self.lock();
        let former = state.counted.get(&port).copied().unwrap_or_default();
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
        let maps = Maps::new().map_err(|cause| host(FIELD, "making a BPF map", &cause))?;
        Ok(Arc::clone(state.maps.insert(Arc::new(maps))))
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        // First frames for this port go through the switch again.
        self.paths.lock().close(self.slot);
        let tap = self.tap;
        let taken = self.namespace.run(|| {
            way::take_away(tap);
            Ok(())
        });
        if let Err(error) = taken {
            tracing::debug!(%error, "a kernel path went with its namespace");
        }
        let counted = self.paths.counters(self.port);
        self.paths.lock().release(self.port, self.slot, counted);
    }
}

impl State {
    fn close(&mut self, slot: u32) {
        self.gates.remove(&slot);
        let Some(maps) = &self.maps else { return };
        maps.close(slot);
        self.addresses.retain(|address, place| {
            let stays = place.slot != slot;
            if !stays {
                maps.addresses.remove(&address_key(address));
            }
            stays
        });
    }

    /// The slot is the next port's, once nothing of this one is left in it.
    fn release(&mut self, port: PortId, slot: u32, counted: KernelPathCounters) {
        self.counted.insert(port, counted);
        let Some(maps) = &self.maps else { return };
        if maps.counters.set(&slot.to_ne_bytes(), &[0; COUNTERS_BYTES]).is_ok() {
            self.ports.remove(&port);
        }
    }
}

/// Counters of before and those of a map's value.
fn sum(former: KernelPathCounters, value: &[u8; COUNTERS_BYTES]) -> KernelPathCounters {
    let at = |at: usize| {
        let eight = value.get(at..).and_then(|rest| rest.first_chunk().copied());
        eight.map_or(0, u64::from_ne_bytes)
    };
    KernelPathCounters {
        sent_frames: former.sent_frames.wrapping_add(at(0)),
        sent_bytes: former.sent_bytes.wrapping_add(at(8)),
        received_frames: former.received_frames.wrapping_add(at(16)),
        received_bytes: former.received_bytes.wrapping_add(at(24)),
    }
}

fn address_key((group, mac): &(u32, MacAddr)) -> [u8; ADDRESS_KEY_BYTES] {
    let mut key = [0; ADDRESS_KEY_BYTES];
    put(&mut key, 0, *group);
    key.iter_mut().skip(4).zip(mac.octets()).for_each(|(to, from)| *to = from);
    key
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes.iter_mut().skip(at).zip(value.to_ne_bytes()).for_each(|(to, from)| *to = from);
}

#[cfg(test)]
mod tests;
