//! One processor's replica of what was learned.

use core::time::Duration;
use std::collections::VecDeque;

use suimon_frame::{MacAddr, VlanId};
use suimon_quantity::{PortId, SwitchId, Time};

use crate::addresses::{Addresses, Note, Place, age, span, tick};
use crate::decide::Batch;
use crate::learned::{Entry, Learned};
use crate::tables::{Ageing, Key, Port};
use crate::vlan_set::number;
use crate::{DropReason, PortSlot, Tables};

/// News kept for the other replicas. What does not fit is not lost: the address
/// is announced with one of its next frames.
const NEWS_MAX: usize = 1024;
/// Buckets looked at in one call of [`Forwarder::handle_age`]: 64 KB.
const SWEEP_BUCKETS: usize = 1024;
/// What one processor knows of where addresses are, and its verdicts.
///
/// Every processor has one and tells the others: whoever owns it passes what
/// [`Forwarder::poll_learned`] gives to [`Forwarder::handle_learned`] of the
/// others. The newest sighting wins, everywhere; of two in the same instant the
/// one on the port with the higher identifier. So the replicas agree once news
/// has spread. An address in use is announced again when its note is a quarter
/// of the ageing old, so that no replica forgets what only another one sees.
///
/// A port that has as many addresses as it may have learns no more, and takes
/// over none: frames of further addresses are forwarded, and frames to them are
/// flooded or go where the address was last learned.
#[derive(Debug)]
pub struct Forwarder {
    pub(crate) addresses: Addresses,
    /// Learned addresses by slot.
    counts: Vec<u32>,
    news: VecDeque<Learned>,
    known: Known,
    sweep_bucket: usize,
    sweep_due: Time,
}

/// What the replica keeps of the tables it has adopted.
#[derive(Debug, Default)]
struct Known {
    /// That of the tables; 0 before the first.
    fingerprint: u64,
    is_adopted: bool,
    ports: Vec<PortId>,
    /// Whether the first source of each port is to be bound, by slot.
    binds_source: Vec<bool>,
    switches: Vec<(SwitchId, Ageing)>,
    salts: Vec<u64>,
    sweep_interval: Duration,
}

impl Forwarder {
    /// An empty replica for up to `capacity` addresses of all switches; takes 32
    /// to 64 bytes for each.
    pub fn new(capacity: usize) -> Self {
        Self {
            addresses: Addresses::new(capacity),
            counts: Vec::new(),
            news: VecDeque::with_capacity(NEWS_MAX),
            known: Known::default(),
            sweep_bucket: 0,
            sweep_due: Time::NEVER,
        }
    }

    /// Adopts new tables: forgets the addresses learned on ports that are gone,
    /// moved to another switch or no longer carry the VLAN, those that are
    /// configured now, those on a NIC that are bound to another one now, and all on a
    /// port with `binds_source` that had it not before, so that its next frame is a
    /// first sighting. All others stay. Tables may be skipped: only the last
    /// adopted and these are compared.
    ///
    /// The other functions do this by themselves when they see tables that
    /// differ; calling it early keeps the work out of the first batch.
    pub fn handle_tables(&mut self, tables: &Tables) {
        let slots: Vec<Option<PortSlot>> =
            self.known.ports.iter().map(|port| tables.slot(*port)).collect();
        let switches = &self.known.switches;
        let mut counts = vec![0u32; tables.slots()];
        self.addresses.retain(0, usize::MAX, |note| {
            let slot = slots.get(usize::from(note.slot)).copied().flatten();
            let Some(slot) = slot else { return false };
            let Some(port) = tables.port(slot) else { return false };
            let Some(switch) = tables.switch(port.switch) else { return false };
            let begins_to_bind = port.binds_source
                && self.known.binds_source.get(usize::from(note.slot)) != Some(&true);
            let was_on = switches.get(usize::from(note.switch)).map(|(id, _)| *id);
            let key = Key::new(switch, port.switch, note.vlan(), note.mac());
            let Some(count) = counts.get_mut(slot.index()) else { return false };
            let stays = was_on == Some(switch.id)
                && tables.carries_number(port, note.vlan())
                && *count < port.learned_max
                && tables.static_slot(&key).is_none()
                && !tables.is_bound_elsewhere(&key, slot)
                && !begins_to_bind;
            if stays {
                *count += 1;
                note.slot = slot.0;
                note.switch = port.switch;
            }
            stays
        });
        self.counts = counts;
        self.known = Known::of(tables, self.addresses.buckets());
    }

    /// What the other replicas should know; `None` if they know everything.
    pub fn poll_learned(&mut self) -> Option<Learned> {
        self.news.pop_front()
    }

    /// Takes in what another replica has learned. News of ports, VLANs or
    /// switches that are not in `tables`, or older than what is known, changes
    /// nothing.
    pub fn handle_learned(&mut self, tables: &Tables, now: Time, learned: Learned) {
        self.adopt(tables);
        let vlan = number(learned.vlan);
        let Some(slot) = tables.slot(learned.port) else { return };
        let Some(port) = tables.port(slot) else { return };
        let Some(switch) = tables.switch(port.switch) else { return };
        let key = Key::new(switch, port.switch, vlan, learned.mac.to_u64());
        let stamp = tick(learned.seen.min(now));
        if switch.id != learned.switch
            || !learned.mac.is_station()
            || !tables.carries_number(port, vlan)
            || age(tick(now), stamp) > switch.ageing.expiry
            || tables.static_slot(&key).is_some()
            || tables.is_bound_elsewhere(&key, slot)
        {
            return;
        }
        let Some((place, note)) = self.addresses.find(&key) else {
            self.insert(&key, slot, port, stamp, now);
            return;
        };
        let lead = stamp.wrapping_sub(note.stamp) as i32;
        if note.slot == slot.0 {
            if lead > 0 {
                if let Some(note) = self.addresses.note_mut(place) {
                    note.stamp = stamp;
                    note.set_unannounced(false);
                }
            }
            return;
        }
        let other = self.known.ports.get(usize::from(note.slot)).copied();
        if lead > 0 || (lead == 0 && Some(learned.port) > other) {
            self.relocate(place, note, slot, port, stamp);
        }
    }

    /// Forgets some of what is too old: a bounded amount of work, and none
    /// before [`Forwarder::next_deadline`]. An address that is too old is not
    /// used in any case; this makes room, and must not be put off for months.
    pub fn handle_age(&mut self, now: Time) {
        if now < self.sweep_due {
            return;
        }
        let counts = &mut self.counts;
        let switches = &self.known.switches;
        let tick = tick(now);
        self.addresses.retain(self.sweep_bucket, SWEEP_BUCKETS, |note| {
            let ageing = switches.get(usize::from(note.switch)).map(|(_, ageing)| *ageing);
            let stays = ageing.is_some_and(|ageing| age(tick, note.stamp) <= ageing.expiry);
            if !stays {
                release(counts, note.slot);
            }
            stays
        });
        self.sweep_bucket += SWEEP_BUCKETS;
        if self.sweep_bucket >= self.addresses.buckets() {
            self.sweep_bucket = 0;
        }
        self.sweep_due = now + self.known.sweep_interval;
    }

    /// When [`Forwarder::handle_age`] wants to be called; `None` while there is
    /// nothing to forget.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.addresses.len() == 0 { None } else { Some(self.sweep_due) }
    }

    /// The learned addresses that are not too old, in no particular order.
    /// Configured ones are not among them.
    pub fn entries(&self, now: Time) -> impl Iterator<Item = Entry> + '_ {
        let tick = tick(now);
        self.addresses.notes(0, usize::MAX).filter_map(move |note| {
            let (switch, ageing) = *self.known.switches.get(usize::from(note.switch))?;
            let port = *self.known.ports.get(usize::from(note.slot))?;
            let age = age(tick, note.stamp);
            let [_, _, octets @ ..] = note.mac().to_be_bytes();
            (age <= ageing.expiry).then(|| Entry {
                switch,
                vlan: VlanId::new(note.vlan()),
                mac: MacAddr::new(octets),
                port,
                age: span(age),
            })
        })
    }

    /// How many addresses are learned, those too old but not yet swept included.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether nothing is learned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn adopt(&mut self, tables: &Tables) {
        if self.known.fingerprint != tables.fingerprint || !self.known.is_adopted {
            self.handle_tables(tables);
        }
    }

    /// Learns a source address on the ingress port.
    ///
    /// # Errors
    /// The address is bound to another NIC. This is not checked for an address that is learned on the
    /// ingress port: [`Forwarder::handle_tables`] forgets those that are bound elsewhere.
    #[inline]
    pub(crate) fn learn(&mut self, batch: &Batch<'_>, key: &Key) -> Result<(), DropReason> {
        match self.addresses.find(key) {
            Some((_, note))
                if note.slot == batch.ingress.0
                    && age(batch.tick, note.stamp) < batch.switch.ageing.refresh
                    && !note.is_unannounced() => {}
            _ if batch.tables.is_bound_elsewhere(key, batch.ingress) => {
                return Err(DropReason::SpoofedSource);
            }
            found => self.learn_news(batch, key, found),
        }
        Ok(())
    }

    /// The uncommon part of learning: new, moved, or due to be announced.
    #[cold]
    fn learn_news(&mut self, batch: &Batch<'_>, key: &Key, found: Option<(Place, Note)>) {
        let (ingress, port) = (batch.ingress, batch.port);
        let before = found.filter(|(_, note)| note.slot != ingress.0);
        let moved_from =
            before.and_then(|(_, note)| self.known.ports.get(usize::from(note.slot)).copied());
        let is_learned = match found {
            None => self.insert(key, ingress, port, batch.tick, batch.now),
            Some((place, note)) if note.slot != ingress.0 => {
                self.relocate(place, note, ingress, port, batch.tick)
            }
            Some((place, _)) => {
                if let Some(note) = self.addresses.note_mut(place) {
                    note.stamp = batch.tick;
                }
                true
            }
        };
        if !is_learned {
            return;
        }
        let is_announced = self.news.len() < NEWS_MAX;
        if is_announced {
            let [_, _, octets @ ..] = (key.word & 0xffff_ffff_ffff).to_be_bytes();
            self.news.push_back(Learned {
                switch: batch.switch.id,
                vlan: VlanId::new(key.vlan()),
                mac: MacAddr::new(octets),
                port: port.id,
                seen: batch.now,
                moved_from,
                is_first: found.is_none(),
            });
        }
        if let Some((place, _)) = self.addresses.find(key) {
            if let Some(note) = self.addresses.note_mut(place) {
                note.set_unannounced(!is_announced);
            }
        }
    }

    fn insert(&mut self, key: &Key, slot: PortSlot, port: &Port, stamp: u32, now: Time) -> bool {
        let Some(count) = self.counts.get_mut(slot.index()) else { return false };
        if *count >= port.learned_max {
            return false;
        }
        if self.addresses.len() == 0 {
            self.sweep_due = now + self.known.sweep_interval;
        }
        let is_inserted =
            self.addresses.insert(key, Note::new(key, slot.0, stamp), &self.known.salts);
        if is_inserted {
            *count += 1;
        }
        is_inserted
    }

    /// Notes that a known address is on another port now.
    fn relocate(
        &mut self,
        place: Place,
        was: Note,
        slot: PortSlot,
        port: &Port,
        stamp: u32,
    ) -> bool {
        let Some(count) = self.counts.get_mut(slot.index()) else { return false };
        if *count >= port.learned_max {
            return false;
        }
        *count += 1;
        release(&mut self.counts, was.slot);
        if let Some(note) = self.addresses.note_mut(place) {
            note.slot = slot.0;
            note.stamp = stamp;
            note.set_unannounced(false);
        }
        true
    }
}

impl Known {
    fn of(tables: &Tables, buckets: usize) -> Self {
        let refresh = tables.switches.iter().map(|switch| switch.ageing.refresh).min();
        let steps = u32::try_from(buckets.div_ceil(SWEEP_BUCKETS)).unwrap_or(u32::MAX);
        Self {
            fingerprint: tables.fingerprint,
            is_adopted: true,
            ports: tables.ports.iter().map(|port| port.id).collect(),
            binds_source: tables.ports.iter().map(|port| port.binds_source).collect(),
            switches: tables.switches.iter().map(|switch| (switch.id, switch.ageing)).collect(),
            salts: tables.switches.iter().map(|switch| switch.salt).collect(),
            // A whole sweep takes as long as the shortest refresh.
            sweep_interval: (span(refresh.unwrap_or(u32::MAX)) / steps.max(1))
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
