//! Learned addresses of one worker (its replica), and the forwarding decisions based on them.

use core::time::Duration;
use std::collections::VecDeque;

use suimon_frame::{MacAddr, VlanId};
use suimon_quantity::{PortId, SwitchId, Time};

use crate::addresses::{
    AddressEntry, AddressTable, Position, age_in_ticks, ticks_to_duration, time_to_tick,
};
use crate::batch::Batch;
use crate::key::AddressKey;
use crate::learned::{AddressSighting, LearnedAddress};
use crate::move_budget::MoveBudget;
use crate::tables::{Ageing, Port};
use crate::vlan_set::number;
use crate::{DropReason, PortSlot, Tables};

/// Maximum number of pending announcements. Further ones are not lost: the address is announced
/// with one of its next frames.
const ANNOUNCEMENTS_MAX: usize = 1024;
/// Number of buckets (64 KB) that one call of [`Forwarder::sweep_expired`] checks for expired
/// addresses.
const SWEEP_BUCKETS: usize = 1024;
/// Learned addresses of one worker (its replica), and its forwarding decisions.
///
/// Each worker has one. Its owner passes the results of [`Forwarder::poll_announcement`] to
/// [`Forwarder::handle_announcement`] of the other workers. The latest sighting of an address takes
/// precedence in every replica; of two at the same time the one on the port with the higher
/// identifier. So replicas converge once announcements have been delivered. An address in use is
/// announced again when its entry is a quarter of the ageing old, so that no replica removes an
/// address whose frames only another worker receives.
///
/// A port with its maximum number of addresses neither learns further ones nor takes them over:
/// their frames are forwarded, and frames to them are flooded or sent to the port where the address
/// was last learned. The same holds for an address that would move to a port to which too many have
/// moved: as many as it may learn at once, at least 64, then about 240 per second.
#[derive(Debug)]
pub struct Forwarder {
    pub(crate) addresses: AddressTable,
    /// Number of learned addresses of each port, by slot.
    counts: Vec<u32>,
    /// Budget for address moves to each port, by slot.
    moves: Vec<MoveBudget>,
    announcements: VecDeque<AddressSighting>,
    adopted: AdoptedTables,
    sweep_bucket: usize,
    sweep_due: Time,
}

/// Properties of the tables adopted last, which the next tables are compared with.
#[derive(Debug, Default)]
struct AdoptedTables {
    /// Fingerprint of these tables; 0 before the first ones.
    fingerprint: u64,
    is_adopted: bool,
    ports: Vec<PortId>,
    /// For each port, by slot: true if its first source address is to be bound to it.
    binds_source: Vec<bool>,
    switches: Vec<(SwitchId, Ageing)>,
    salts: Vec<u64>,
    sweep_interval: Duration,
}

impl Forwarder {
    /// Creates an empty replica for up to `capacity` addresses of all switches. Uses 32 to 64 bytes
    /// per address.
    pub fn new(capacity: usize) -> Self {
        Self {
            addresses: AddressTable::new(capacity),
            counts: Vec::new(),
            moves: Vec::new(),
            announcements: VecDeque::with_capacity(ANNOUNCEMENTS_MAX),
            adopted: AdoptedTables::default(),
            sweep_bucket: 0,
            sweep_due: Time::NEVER,
        }
    }

    /// Adopts new tables. Removes the addresses learned on ports that were removed, moved to
    /// another switch or no longer carry the VLAN; those that are now configured; those on a NIC
    /// that are now bound to another one; those above the port's maximum; and all on a port on
    /// which `binds_source` was enabled, so that its next frame is a first sighting. All others are
    /// kept. Tables may be skipped: only the last adopted ones and these are compared.
    ///
    /// The other functions call this when they find changed tables; an early call keeps the work
    /// out of the first batch. Returns true if the addresses were checked. Tables that do not
    /// differ in these respects cost nothing, however many addresses are learned.
    pub fn handle_tables(&mut self, tables: &Tables) -> bool {
        if self.adopted.is_adopted && self.adopted.fingerprint == tables.fingerprint {
            return false;
        }
        let slots: Vec<Option<PortSlot>> =
            self.adopted.ports.iter().map(|port| tables.slot(*port)).collect();
        let switches = &self.adopted.switches;
        let mut counts = vec![0u32; tables.port_count()];
        self.addresses.retain(0, usize::MAX, |note| {
            let slot = slots.get(usize::from(note.slot)).copied().flatten();
            let Some(slot) = slot else { return false };
            let Some(port) = tables.port(slot) else { return false };
            let Some(switch) = tables.switch(port.switch_index) else { return false };
            let begins_to_bind = port.binds_source
                && self.adopted.binds_source.get(usize::from(note.slot)) != Some(&true);
            let was_on = switches.get(usize::from(note.switch_index)).map(|(id, _)| *id);
            let key = AddressKey::new(switch.salt, port.switch_index, note.vlan(), note.mac());
            let Some(count) = counts.get_mut(slot.index()) else { return false };
            let is_retained = was_on == Some(switch.id)
                && tables.carries_number(port, note.vlan())
                && *count < port.learned_addresses_max
                && tables.configured_slot(&key).is_none()
                && !tables.is_bound_to_other_nic(&key, slot)
                && !begins_to_bind;
            if is_retained {
                *count += 1;
                note.slot = slot.0;
                note.switch_index = port.switch_index;
            }
            is_retained
        });
        self.counts = counts;
        let mut moves = vec![MoveBudget::default(); tables.port_count()];
        for (before, slot) in self.moves.iter().zip(&slots) {
            if let Some(entry) = slot.and_then(|slot| moves.get_mut(slot.index())) {
                *entry = *before;
            }
        }
        self.moves = moves;
        self.adopted = AdoptedTables::from_tables(tables, self.addresses.buckets());
        true
    }

    /// Returns the next announcement for the other replicas; `None` if there is none.
    pub fn poll_announcement(&mut self) -> Option<AddressSighting> {
        self.announcements.pop_front()
    }

    /// Processes an announcement of another worker's replica. Announcements of ports, VLANs or
    /// switches not in `tables`, or older than this replica's own entry, have no effect.
    pub fn handle_announcement(&mut self, tables: &Tables, now: Time, learned: AddressSighting) {
        self.adopt(tables);
        let vlan = number(learned.vlan);
        let Some(slot) = tables.slot(learned.port) else { return };
        let Some(port) = tables.port(slot) else { return };
        let Some(switch) = tables.switch(port.switch_index) else { return };
        let key = AddressKey::new(switch.salt, port.switch_index, vlan, learned.mac.to_u64());
        let stamp = time_to_tick(learned.seen_at.min(now));
        if switch.id != learned.switch
            || !learned.mac.is_station()
            || !tables.carries_number(port, vlan)
            || age_in_ticks(time_to_tick(now), stamp) > switch.ageing.expiry_ticks
            || tables.configured_slot(&key).is_some()
            || tables.is_bound_to_other_nic(&key, slot)
        {
            return;
        }
        let Some((position, note)) = self.addresses.find(&key) else {
            self.insert(&key, slot, port, stamp, now);
            return;
        };
        let lead = stamp.wrapping_sub(note.renewed_tick) as i32;
        if note.slot == slot.0 {
            if lead > 0 {
                if let Some(note) = self.addresses.entry_mut(position) {
                    note.renewed_tick = stamp;
                    note.set_unannounced(false);
                }
            }
            return;
        }
        let other = self.adopted.ports.get(usize::from(note.slot)).copied();
        if lead > 0 || (lead == 0 && Some(learned.port) > other) {
            self.relocate(position, note, slot, port, stamp);
        }
    }

    /// Removes expired addresses from the next 1024 buckets; does nothing before
    /// [`Forwarder::next_deadline`]. Expired addresses are not used for forwarding in any case;
    /// removal frees their entries. The calls must not be delayed by months, because entry ages
    /// wrap.
    pub fn sweep_expired(&mut self, now: Time) {
        if now < self.sweep_due {
            return;
        }
        let counts = &mut self.counts;
        let switches = &self.adopted.switches;
        let tick = time_to_tick(now);
        self.addresses.retain(self.sweep_bucket, SWEEP_BUCKETS, |note| {
            let ageing = switches.get(usize::from(note.switch_index)).map(|(_, ageing)| *ageing);
            let is_retained = ageing
                .is_some_and(|ageing| age_in_ticks(tick, note.renewed_tick) <= ageing.expiry_ticks);
            if !is_retained {
                release(counts, note.slot);
            }
            is_retained
        });
        self.sweep_bucket += SWEEP_BUCKETS;
        if self.sweep_bucket >= self.addresses.buckets() {
            self.sweep_bucket = 0;
        }
        self.sweep_due = now + self.adopted.sweep_interval;
    }

    /// Returns when to call [`Forwarder::sweep_expired`]; `None` while no address is learned.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.addresses.len() == 0 { None } else { Some(self.sweep_due) }
    }

    /// Returns the learned addresses that have not expired, in no particular order. Configured ones
    /// are not included.
    pub fn entries(&self, now: Time) -> impl Iterator<Item = LearnedAddress> + '_ {
        let tick = time_to_tick(now);
        self.addresses.entries(0, usize::MAX).filter_map(move |note| {
            let (switch, ageing) = *self.adopted.switches.get(usize::from(note.switch_index))?;
            let port = *self.adopted.ports.get(usize::from(note.slot))?;
            let age = age_in_ticks(tick, note.renewed_tick);
            let [_, _, octets @ ..] = note.mac().to_be_bytes();
            (age <= ageing.expiry_ticks).then(|| LearnedAddress {
                switch,
                vlan: VlanId::new(note.vlan()),
                mac: MacAddr::new(octets),
                port,
                age: ticks_to_duration(age),
            })
        })
    }

    /// Returns the number of learned addresses, including expired ones not yet removed.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Returns true if no address is learned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn adopt(&mut self, tables: &Tables) {
        if self.adopted.fingerprint != tables.fingerprint || !self.adopted.is_adopted {
            let _ = self.handle_tables(tables);
        }
    }

    /// Deducts one address move from the budget of the port in `slot`. Returns false if the budget
    /// is used up.
    fn may_move(&mut self, slot: PortSlot, port: &Port, tick: u32) -> bool {
        let budget = self.moves.get_mut(slot.index());
        budget.is_some_and(|budget| budget.take(tick, port.learned_addresses_max))
    }

    /// Learns the source address `key` on the ingress port.
    ///
    /// # Errors
    ///
    /// [`DropReason::SpoofedSource`]: the address is bound to another NIC. This is not checked for
    /// an address already learned on the ingress port: [`Forwarder::handle_tables`] removes those
    /// bound elsewhere.
    #[inline]
    pub(crate) fn learn(&mut self, batch: &Batch<'_>, key: &AddressKey) -> Result<(), DropReason> {
        match self.addresses.find(key) {
            Some((_, note))
                if note.slot == batch.ingress.0
                    && age_in_ticks(batch.tick, note.renewed_tick)
                        < batch.switch.ageing.refresh_ticks
                    && !note.is_unannounced() => {}
            _ if batch.tables.is_bound_to_other_nic(key, batch.ingress) => {
                return Err(DropReason::SpoofedSource);
            }
            existing => self.learn_new_address(batch, key, existing),
        }
        Ok(())
    }

    /// Learns an address that is new, has moved to the ingress port, or is due to be renewed and
    /// announced.
    #[cold]
    fn learn_new_address(
        &mut self,
        batch: &Batch<'_>,
        key: &AddressKey,
        existing: Option<(Position, AddressEntry)>,
    ) {
        let (ingress, port) = (batch.ingress, batch.port);
        let before = existing.filter(|(_, note)| note.slot != ingress.0);
        let moved_from =
            before.and_then(|(_, note)| self.adopted.ports.get(usize::from(note.slot)).copied());
        let is_learned = match existing {
            None => self.insert(key, ingress, port, batch.tick, batch.now),
            Some((position, note)) if note.slot != ingress.0 => {
                self.may_move(ingress, port, batch.tick)
                    && self.relocate(position, note, ingress, port, batch.tick)
            }
            Some((position, _)) => {
                if let Some(note) = self.addresses.entry_mut(position) {
                    note.renewed_tick = batch.tick;
                }
                true
            }
        };
        if !is_learned {
            return;
        }
        let is_announced = self.announcements.len() < ANNOUNCEMENTS_MAX;
        if is_announced {
            let [_, _, octets @ ..] = (key.mac_and_vlan & 0xffff_ffff_ffff).to_be_bytes();
            self.announcements.push_back(AddressSighting {
                switch: batch.switch.id,
                vlan: VlanId::new(key.vlan()),
                mac: MacAddr::new(octets),
                port: port.id,
                seen_at: batch.now,
                moved_from,
                is_first: existing.is_none(),
            });
        }
        if let Some((position, _)) = self.addresses.find(key) {
            if let Some(note) = self.addresses.entry_mut(position) {
                note.set_unannounced(!is_announced);
            }
        }
    }

    fn insert(
        &mut self,
        key: &AddressKey,
        slot: PortSlot,
        port: &Port,
        stamp: u32,
        now: Time,
    ) -> bool {
        let Some(count) = self.counts.get_mut(slot.index()) else { return false };
        if *count >= port.learned_addresses_max {
            return false;
        }
        if self.addresses.len() == 0 {
            self.sweep_due = now + self.adopted.sweep_interval;
        }
        let is_inserted =
            self.addresses.insert(key, AddressEntry::new(key, slot.0, stamp), &self.adopted.salts);
        if is_inserted {
            *count += 1;
        }
        is_inserted
    }

    /// Changes the port of a known address to `slot`. Returns false, without a change, if that port
    /// has its maximum number of addresses.
    fn relocate(
        &mut self,
        position: Position,
        previous: AddressEntry,
        slot: PortSlot,
        port: &Port,
        stamp: u32,
    ) -> bool {
        let Some(count) = self.counts.get_mut(slot.index()) else { return false };
        if *count >= port.learned_addresses_max {
            return false;
        }
        *count += 1;
        release(&mut self.counts, previous.slot);
        if let Some(note) = self.addresses.entry_mut(position) {
            note.slot = slot.0;
            note.renewed_tick = stamp;
            note.set_unannounced(false);
        }
        true
    }
}

impl AdoptedTables {
    fn from_tables(tables: &Tables, buckets: usize) -> Self {
        let refresh = tables.switches.iter().map(|switch| switch.ageing.refresh_ticks).min();
        let steps = u32::try_from(buckets.div_ceil(SWEEP_BUCKETS)).unwrap_or(u32::MAX);
        Self {
            fingerprint: tables.fingerprint,
            is_adopted: true,
            ports: tables.ports.iter().map(|port| port.id).collect(),
            binds_source: tables.ports.iter().map(|port| port.binds_source).collect(),
            switches: tables.switches.iter().map(|switch| (switch.id, switch.ageing)).collect(),
            salts: tables.switches.iter().map(|switch| switch.salt).collect(),
            // A complete sweep takes as long as the shortest refresh interval.
            sweep_interval: (ticks_to_duration(refresh.unwrap_or(u32::MAX)) / steps.max(1))
                .max(Duration::from_millis(1)),
        }
    }
}

fn release(counts: &mut [u32], slot: u16) {
    if let Some(count) = counts.get_mut(usize::from(slot)) {
        *count = count.saturating_sub(1);
    }
}

#[cfg(test)]
#[path = "forwarder_tests.rs"]
mod tests;
