//! One processor's replica of what was learned, and its verdicts.

use core::time::Duration;
use std::collections::VecDeque;

use suimon_frame::{BATCH_FRAMES_MAX, Frame, MacAddr, VlanId, VlanTag};
use suimon_quantity::{PortId, SwitchId, Time};

use crate::addresses::{Addresses, Note, age, span, tick};
use crate::egress::{TagRule, fits};
use crate::learned::{Entry, Learned};
use crate::tables::{Ageing, Key, Port, Switch};
use crate::vlan_set::number;
use crate::{DropReason, FloodKind, PortSlot, Tables, Verdict};

/// News kept for the other replicas. What does not fit is not lost: the address
/// is announced with one of its next frames.
const NEWS_MAX: usize = 1024;
/// Buckets looked at in one call of [`Forwarder::handle_age`]: 64 KB.
const SWEEP_BUCKETS: usize = 1024;
/// The group bit of an address as a number.
const GROUP: u64 = 1 << 40;
/// 01:80:c2:00:00:00 to 0f, without the last four bits.
const LINK_LOCAL: u64 = 0x0180_c200_0000;

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
    addresses: Addresses,
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
    switches: Vec<(SwitchId, Ageing)>,
    salts: Vec<u64>,
    sweep_interval: Duration,
}

/// What all frames of a batch have in common.
struct Batch<'a> {
    tables: &'a Tables,
    now: Time,
    tick: u32,
    ingress: PortSlot,
    port: &'a Port,
    switch: &'a Switch,
}

/// What the course of a frame depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Flow {
    destination: u64,
    source: u64,
    tag: Option<VlanTag>,
}

enum Course<'a> {
    Unicast(Route<'a>),
    Flood(Option<VlanId>, FloodKind),
}

/// Where a unicast goes. It is good for the next frame of the batch too, if that
/// is of the same flow, as most are: in between nothing is learned and no time
/// passes.
#[derive(Clone, Copy)]
struct Route<'a> {
    flow: Flow,
    egress: PortSlot,
    port: &'a Port,
    rule: TagRule,
}

impl Flow {
    #[inline]
    fn of(frame: &Frame) -> Option<Self> {
        let &[d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, _, _] =
            frame.bytes().first_chunk::<14>()?;
        Some(Self {
            destination: u64::from_be_bytes([0, 0, d0, d1, d2, d3, d4, d5]),
            source: u64::from_be_bytes([0, 0, s0, s1, s2, s3, s4, s5]),
            tag: frame.meta.tag,
        })
    }
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
    /// moved to another switch or no longer carry the VLAN, and those that are
    /// configured now. All others stay. Tables may be skipped: only the last
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
            let was_on = switches.get(usize::from(note.switch)).map(|(id, _)| *id);
            let key = Key::new(switch, port.switch, note.vlan(), note.mac());
            let Some(count) = counts.get_mut(slot.index()) else { return false };
            let stays = was_on == Some(switch.id)
                && tables.carries_number(port, note.vlan())
                && *count < port.learned_max
                && tables.static_slot(&key).is_none();
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

    /// Gives each frame of a batch its verdict and learns from it. `frames` are
    /// at most [`BATCH_FRAMES_MAX`]; further ones get no verdict.
    ///
    /// Dropped frames teach nothing, unless they are dropped at the egress. A
    /// source that is another port's configured address is dropped if that port
    /// is held to its address; if it may use others (an address shared by a
    /// cluster, say), the frame is forwarded and nothing is learned: the
    /// configured port keeps the address.
    pub fn decide(
        &mut self,
        tables: &Tables,
        now: Time,
        ingress: PortSlot,
        frames: &mut [Frame],
        verdicts: &mut [Verdict; BATCH_FRAMES_MAX],
    ) {
        self.adopt(tables);
        let port = tables.port(ingress);
        let Some((port, switch)) = port.and_then(|port| Some((port, tables.switch(port.switch)?)))
        else {
            verdicts.fill(Verdict::Drop(DropReason::PortGone));
            return;
        };
        let batch = Batch { tables, now, tick: tick(now), ingress, port, switch };
        let mut last = None;
        for (frame, verdict) in frames.iter_mut().zip(verdicts) {
            *verdict = self.decide_one(&batch, frame, &mut last).unwrap_or_else(Verdict::Drop);
        }
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
    fn adopt(&mut self, tables: &Tables) {
        if self.known.fingerprint != tables.fingerprint || !self.known.is_adopted {
            self.handle_tables(tables);
        }
    }

    #[inline]
    fn decide_one<'a>(
        &mut self,
        batch: &Batch<'a>,
        frame: &mut Frame,
        last: &mut Option<Route<'a>>,
    ) -> Result<Verdict, DropReason> {
        let flow = Flow::of(frame).ok_or(DropReason::Malformed)?;
        let route = match last {
            Some(route) if route.flow == flow => *route,
            _ => {
                *last = None;
                match self.course(batch, flow)? {
                    Course::Flood(vlan, kind) => return Ok(Verdict::Flood { vlan, kind }),
                    Course::Unicast(route) => *last.insert(route),
                }
            }
        };
        if !fits(route.port, frame) {
            return Err(DropReason::TooLong);
        }
        frame.meta.tag = route.rule.apply(frame.meta.tag);
        Ok(Verdict::Unicast { egress: route.egress })
    }

    /// Everything that depends on addresses and tag only; learns the source.
    #[inline]
    fn course<'a>(&mut self, batch: &Batch<'a>, flow: Flow) -> Result<Course<'a>, DropReason> {
        let vlan = batch.tables.ingress_vlan(batch.port, flow.tag)?;
        let is_own = check_source(batch, flow.source)?;
        if flow.destination & !0xf == LINK_LOCAL {
            return Err(DropReason::LinkLocal);
        }
        if !is_own {
            let key = Key::new(batch.switch, batch.port.switch, vlan, flow.source);
            match batch.tables.static_slot(&key).and_then(|slot| batch.tables.port(slot)) {
                None => self.learn(batch, &key),
                Some(owner) if owner.guarded => return Err(DropReason::SpoofedSource),
                Some(_) => {}
            }
        }
        if flow.destination & GROUP != 0 {
            return Ok(Course::Flood(VlanId::new(vlan), FloodKind::Group));
        }
        let key = Key::new(batch.switch, batch.port.switch, vlan, flow.destination);
        let Some(egress) = self.locate(batch, &key) else {
            return Ok(Course::Flood(VlanId::new(vlan), FloodKind::UnknownUnicast));
        };
        let port = batch.tables.port(egress).ok_or(DropReason::NoDestination)?;
        if egress == batch.ingress {
            return Err(DropReason::SameEgress);
        }
        if batch.port.isolated && port.isolated {
            return Err(DropReason::Isolated);
        }
        Ok(Course::Unicast(Route { flow, egress, port, rule: TagRule::of(port, vlan) }))
    }

    #[inline]
    fn locate(&self, batch: &Batch<'_>, key: &Key) -> Option<PortSlot> {
        if let Some(slot) = batch.tables.static_slot(key) {
            return Some(slot);
        }
        let (_, note) = self.addresses.find(key)?;
        let is_fresh = age(batch.tick, note.stamp) <= batch.switch.ageing.expiry;
        is_fresh.then_some(PortSlot(note.slot))
    }

    #[inline]
    fn learn(&mut self, batch: &Batch<'_>, key: &Key) {
        match self.addresses.find(key) {
            Some((_, note))
                if note.slot == batch.ingress.0
                    && age(batch.tick, note.stamp) < batch.switch.ageing.refresh
                    && !note.is_unannounced() => {}
            found => self.learn_news(batch, key, found),
        }
    }

    /// The uncommon part of learning: new, moved, or due to be announced.
    #[cold]
    fn learn_news(
        &mut self,
        batch: &Batch<'_>,
        key: &Key,
        found: Option<(crate::addresses::Place, Note)>,
    ) {
        let (ingress, port) = (batch.ingress, batch.port);
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
        place: crate::addresses::Place,
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

/// Whether the source is the port's own configured address, which needs no
/// further look.
#[inline]
fn check_source(batch: &Batch<'_>, source: u64) -> Result<bool, DropReason> {
    if source == batch.port.mac {
        // A configured address is a station's; without one `mac` is zero.
        return if source == 0 { Err(DropReason::ZeroSource) } else { Ok(true) };
    }
    if source & GROUP != 0 {
        Err(DropReason::GroupSource)
    } else if source == 0 {
        Err(DropReason::ZeroSource)
    } else if batch.port.guarded {
        Err(DropReason::SpoofedSource)
    } else {
        Ok(false)
    }
}

#[cfg(test)]
#[path = "forwarder_tests.rs"]
mod tests;
