//! Receive coalescing of a batch between the decision and the hand-over, for ports
//! that take large frames and want joined ones.
//!
//! Which forms of frame a port takes is known to the owners of its egress queues;
//! [`EgressForms`] tells everybody else. What they say may be late by one batch:
//! then a frame is joined that the egress does not take, and is cut into the same
//! segments again there.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use suimon_forwarding::{PortSlot, Verdict};
use suimon_frame::{Coalesced, Frame, Lane, Offloads, coalesce};

use crate::published::{PortRuntime, Published};

/// The forms of frame that a port's egress queues take, as they last said.
#[derive(Debug, Default)]
pub(crate) struct EgressForms(AtomicU8);

impl EgressForms {
    /// From now on these. Written by whoever owns an egress queue of the port.
    pub(crate) fn set(&self, offloads: Offloads) {
        let bits = offloads.to_bits();
        // A line that others read is not written without need.
        if self.0.load(Relaxed) != bits {
            self.0.store(bits, Relaxed);
        }
    }

    pub(crate) fn get(&self) -> Offloads {
        Offloads::from_bits(self.0.load(Relaxed))
    }
}

/// Joins the segments that go to one port, and counts them there. Frames that are
/// absorbed are not to be delivered.
#[inline]
pub(crate) fn coalesce_decided(
    published: &Published,
    verdicts: &[Verdict],
    frames: &mut [Frame],
) -> Coalesced {
    let coalesced =
        coalesce(frames, |at| verdicts.get(at).map_or(Lane::Apart, |of| lane(published, of)));
    if !coalesced.is_empty() {
        count(published, verdicts, coalesced);
    }
    coalesced
}

fn lane(published: &Published, verdict: &Verdict) -> Lane {
    match verdict {
        Verdict::Flood { .. } => Lane::All,
        Verdict::Drop(_) => Lane::Apart,
        Verdict::Unicast { egress } => {
            let port = published.ports.get(egress.index()).filter(|port| port.receive_coalescing);
            let takes = port.map_or(Offloads::NONE, |port| forms(published, port));
            if takes.tcp4_segmentation || takes.tcp6_segmentation {
                // Slots are numbered in 16 bits.
                Lane::Egress(egress.index() as u16, takes)
            } else {
                Lane::Apart
            }
        }
    }
}

/// The forms that a port takes. Of a team, those that all members take which have
/// queues: which one a frame leaves by is not known before it is joined.
#[inline]
fn forms(published: &Published, port: &PortRuntime) -> Offloads {
    let Some(team) = port.team.and_then(|team| published.teams.get(team)) else {
        return port.shared.egress_forms.get();
    };
    let members = team.members.iter().filter_map(|(_, place)| published.ports.get(*place));
    let attached = members.filter(|member| !member.egress.is_empty());
    let bits = attached.map(|member| member.shared.egress_forms.get().to_bits());
    bits.reduce(|all, bits| all & bits).map_or(Offloads::NONE, Offloads::from_bits)
}

/// Counters are shared by all processors, so they are added to once for each run
/// of frames to one port.
fn count(published: &Published, verdicts: &[Verdict], coalesced: Coalesced) {
    let mut run: Option<(PortSlot, u64, u64)> = None;
    let add = |run: Option<(PortSlot, u64, u64)>| {
        let Some((slot, segments, units)) = run else { return };
        if let Some(port) = published.ports.get(slot.index()) {
            port.shared.tally.coalesced_segments.add(segments);
            port.shared.tally.coalesced_units.add(units);
        }
    };
    for (at, verdict) in verdicts.iter().enumerate() {
        let is_unit = coalesced.is_unit(at);
        let Verdict::Unicast { egress } = *verdict else { continue };
        if !is_unit && !coalesced.is_absorbed(at) {
            continue;
        }
        let (segments, units) = match run {
            Some((slot, segments, units)) if slot == egress => (segments, units),
            other => {
                add(other);
                (0, 0)
            }
        };
        run = Some((egress, segments + 1, units + u64::from(is_unit)));
    }
    add(run);
}

#[cfg(test)]
#[path = "coalescing_tests.rs"]
mod tests;
