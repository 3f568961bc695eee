//! Forwarding decisions for a batch of frames.

use suimon_frame::{BATCH_FRAMES_MAX, Frame, VlanId, VlanTag};
use suimon_quantity::Time;

use crate::addresses::{age_in_ticks, time_to_tick};
use crate::batch::Batch;
use crate::egress::{TagRule, fits_mtu};
use crate::key::AddressKey;
use crate::tables::Port;
use crate::{DropReason, FloodKind, Forwarder, PortSlot, Tables, Verdict};

/// Group bit of a MAC address that is stored as a 48-bit number.
const GROUP: u64 = 1 << 40;
/// Prefix of the reserved addresses 01:80:c2:00:00:00 to 0f, without the last four bits.
const LINK_LOCAL: u64 = 0x0180_c200_0000;

/// Number of learned addresses from which the table entries of all frames of a batch are loaded
/// before the first lookup: the table then exceeds the nearest caches, and independent loads
/// overlap. A smaller table stays in the cache.
const TOUCH_ADDRESSES_MIN: usize = 1024;

/// Frame fields that determine the forwarding decision.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Flow {
    destination: u64,
    source: u64,
    tag: Option<VlanTag>,
    /// True if another tag follows `tag`, or a first tag is of a type that the switch does not
    /// read.
    has_nested_tag: bool,
}

enum Decision<'a> {
    Unicast(Route<'a>),
    Flood(Option<VlanId>, FloodKind),
}

/// Result of a unicast lookup. The next frame of the batch reuses it if that frame belongs to the
/// same flow, which is the usual case: no address is learned and no time passes between the two.
#[derive(Clone, Copy)]
struct Route<'a> {
    flow: Flow,
    egress: PortSlot,
    port: &'a Port,
    rule: TagRule,
}

impl Flow {
    #[inline]
    fn from_frame(frame: &Frame) -> Option<Self> {
        let &[d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, _, _] =
            frame.head().first_chunk::<14>()?;
        Some(Self {
            destination: u64::from_be_bytes([0, 0, d0, d1, d2, d3, d4, d5]),
            source: u64::from_be_bytes([0, 0, s0, s1, s2, s3, s4, s5]),
            tag: frame.meta.tag,
            has_nested_tag: frame.has_tag_in_bytes(),
        })
    }
}

impl Forwarder {
    /// Decides about each frame of a batch and learns its source address. Writes one verdict per
    /// frame to `verdicts`; at most [`BATCH_FRAMES_MAX`] `frames`, further ones get no verdict.
    ///
    /// No address is learned from dropped frames, unless they are dropped because of the egress
    /// port. A frame whose source is the configured address of another port is dropped if that port
    /// is restricted to its address. If that port may use other addresses (for example one shared
    /// by a cluster), the frame is forwarded and nothing is learned: the configured port keeps the
    /// address. A frame of a NIC whose source is bound to another NIC is dropped.
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
        let Some((port, switch)) =
            port.and_then(|port| Some((port, tables.switch(port.switch_index)?)))
        else {
            verdicts.fill(Verdict::Drop(DropReason::PortGone));
            return;
        };
        let batch = Batch { tables, now, tick: time_to_tick(now), ingress, port, switch };
        if self.addresses.len() >= TOUCH_ADDRESSES_MIN {
            self.touch(&batch, frames);
        }
        let mut last = None;
        for (frame, verdict) in frames.iter_mut().zip(verdicts) {
            // Verdicts are written in place: one that is built elsewhere and copied would be read
            // before the store has completed.
            match self.route(&batch, frame, &mut last) {
                Ok(Decision::Unicast(route)) if fits_mtu(route.port, frame) => {
                    frame.meta.tag = route.rule.apply(frame.meta.tag);
                    *verdict = Verdict::Unicast { egress: route.egress };
                }
                Ok(Decision::Unicast(_)) => *verdict = Verdict::Drop(DropReason::TooLong),
                Ok(Decision::Flood(vlan, kind)) => *verdict = Verdict::Flood { vlan, kind },
                Err(reason) => *verdict = Verdict::Drop(reason),
            }
        }
    }

    /// Loads the table entries of the source and destination addresses of `frames` into the cache.
    /// The hashes are computed first, so that the loads are consecutive and overlap.
    fn touch(&self, batch: &Batch<'_>, frames: &[Frame]) {
        let mut hashes = [0; 2 * BATCH_FRAMES_MAX];
        let mut count = 0;
        let mut last = None;
        for flow in frames.iter().filter_map(Flow::from_frame) {
            let before = last.replace(flow);
            let Ok(vlan) = batch.tables.ingress_vlan(batch.port, flow.tag, flow.has_nested_tag)
            else {
                continue;
            };
            for (address, before) in [
                (flow.destination, before.map(|flow| flow.destination)),
                (flow.source, before.map(|flow| flow.source)),
            ] {
                if before == Some(address) {
                    continue;
                }
                if let Some(entry) = hashes.get_mut(count) {
                    *entry =
                        AddressKey::new(batch.switch.salt, batch.port.switch_index, vlan, address)
                            .hash;
                    count += 1;
                }
            }
        }
        let loads = hashes.iter().take(count).map(|hash| self.addresses.prefetch(*hash));
        core::hint::black_box(loads.fold(0, |sum, word| sum ^ word));
    }

    /// Returns the decision for a frame: `last`, that of the previous frame, if both belong to the
    /// same flow, otherwise a new one. Updates `last`.
    ///
    /// # Errors
    ///
    /// The reason for which the frame is dropped.
    #[inline]
    fn route<'a>(
        &mut self,
        batch: &Batch<'a>,
        frame: &Frame,
        last: &mut Option<Route<'a>>,
    ) -> Result<Decision<'a>, DropReason> {
        let flow = Flow::from_frame(frame).ok_or(DropReason::Malformed)?;
        if let Some(route) = last.filter(|route| route.flow == flow) {
            return Ok(Decision::Unicast(route));
        }
        let course = self.decide_flow(batch, flow);
        *last = match course {
            Ok(Decision::Unicast(route)) => Some(route),
            _ => None,
        };
        course
    }

    /// Decides from the addresses and tag of a frame, and learns its source address.
    ///
    /// # Errors
    ///
    /// The reason for which the frame is dropped.
    #[inline]
    fn decide_flow<'a>(
        &mut self,
        batch: &Batch<'a>,
        flow: Flow,
    ) -> Result<Decision<'a>, DropReason> {
        let vlan = batch.tables.ingress_vlan(batch.port, flow.tag, flow.has_nested_tag)?;
        let is_own = check_source(batch, flow.source)?;
        if flow.destination & !0xf == LINK_LOCAL {
            return Err(DropReason::LinkLocal);
        }
        if !is_own {
            let key =
                AddressKey::new(batch.switch.salt, batch.port.switch_index, vlan, flow.source);
            let owner = batch.tables.configured_slot(&key);
            match owner.and_then(|slot| batch.tables.port(slot)) {
                None => self.learn(batch, &key)?,
                // The address belongs to a port that is reached by the ingress port.
                Some(_) if owner == Some(batch.ingress) => {}
                // The address belongs to a port that is reached by another port or restricted to
                // its address.
                Some(owner) if owner.restricts_source || owner.mac != flow.source => {
                    return Err(DropReason::SpoofedSource);
                }
                Some(_) => {}
            }
        }
        if flow.destination & GROUP != 0 {
            return Ok(Decision::Flood(VlanId::new(vlan), FloodKind::Group));
        }
        let key =
            AddressKey::new(batch.switch.salt, batch.port.switch_index, vlan, flow.destination);
        let Some(egress) = self.locate(batch, &key) else {
            return Ok(Decision::Flood(VlanId::new(vlan), FloodKind::UnknownUnicast));
        };
        let port = batch.tables.port(egress).ok_or(DropReason::NoDestination)?;
        if egress == batch.ingress {
            return Err(DropReason::SameEgress);
        }
        if batch.port.isolated && port.isolated {
            return Err(DropReason::Isolated);
        }
        let rule = TagRule::for_vlan(port, vlan);
        if flow.has_nested_tag && !rule.permits_nested_tag(port) {
            return Err(DropReason::NestedTag);
        }
        Ok(Decision::Unicast(Route { flow, egress, port, rule }))
    }

    #[inline]
    fn locate(&self, batch: &Batch<'_>, key: &AddressKey) -> Option<PortSlot> {
        if let Some(slot) = batch.tables.configured_slot(key) {
            return Some(slot);
        }
        let (_, note) = self.addresses.find(key)?;
        let is_waiting =
            age_in_ticks(batch.tick, note.renewed_tick) <= batch.switch.ageing.expiry_ticks;
        is_waiting.then_some(PortSlot(note.slot))
    }
}

/// Checks the source address of a frame. Returns true if it is the configured address of the
/// ingress port, false if it must be looked up.
///
/// # Errors
///
/// [`DropReason::ZeroSource`], [`DropReason::GroupSource`], or [`DropReason::SpoofedSource`] if the
/// port is restricted to its configured address.
#[inline]
fn check_source(batch: &Batch<'_>, source: u64) -> Result<bool, DropReason> {
    if source == batch.port.mac {
        // A configured address is never zero; `mac` is zero only without one.
        return if source == 0 { Err(DropReason::ZeroSource) } else { Ok(true) };
    }
    if source & GROUP != 0 {
        Err(DropReason::GroupSource)
    } else if source == 0 {
        Err(DropReason::ZeroSource)
    } else if batch.port.restricts_source {
        Err(DropReason::SpoofedSource)
    } else {
        Ok(false)
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
