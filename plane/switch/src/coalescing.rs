//! Receive coalescing of a batch between the forwarding decision and the delivery, for ports that
//! accept large frames and have receive coalescing enabled.
//!
//! The owners of a port's egress queues know which offloads they accept and report them to the
//! other workers ([`crate::accepted_offloads`]). The report may be late by one batch. A frame is
//! then coalesced that the egress does not accept, and is segmented there into the same segments.

use suimon_forwarding::{PortSlot, Verdict};
use suimon_frame::{CoalesceResult, CoalesceTarget, Frame, Offloads, coalesce};

use crate::published::{PortRuntime, PublishedTables};

/// Coalesces the TCP segments of a batch that go to the same port, and adds to the counters of that
/// port. Frames that the result marks as merged into another one must not be delivered.
#[inline]
pub(crate) fn coalesce_by_verdict(
    published: &PublishedTables,
    verdicts: &[Verdict],
    frames: &mut [Frame],
) -> CoalesceResult {
    let coalesced = coalesce(frames, |index| {
        verdicts.get(index).map_or(CoalesceTarget::Excluded, |verdict| lane(published, verdict))
    });
    if !coalesced.is_empty() {
        count(published, verdicts, coalesced);
    }
    coalesced
}

fn lane(published: &PublishedTables, verdict: &Verdict) -> CoalesceTarget {
    match verdict {
        Verdict::Flood { .. } => CoalesceTarget::Multiple,
        Verdict::Drop(_) => CoalesceTarget::Excluded,
        Verdict::Unicast { egress } => {
            let port = published.ports.get(egress.index()).filter(|port| port.receive_coalescing);
            let offloads = port.map_or(Offloads::NONE, |port| forms(published, port));
            if offloads.tcp4_segmentation || offloads.tcp6_segmentation {
                // Slots are 16-bit numbers.
                CoalesceTarget::Egress(egress.index() as u16, offloads)
            } else {
                CoalesceTarget::Excluded
            }
        }
    }
}

/// Returns the large-frame forms that a port accepts. For a team, these are the offloads that all
/// members with egress queues accept: the member by which a frame leaves is chosen after
/// coalescing.
#[inline]
fn forms(published: &PublishedTables, port: &PortRuntime) -> Offloads {
    let Some(team) = port.team_index.and_then(|team| published.teams.get(team)) else {
        return port.shared.accepted_offloads.get();
    };
    let members = team.members.iter().filter_map(|(_, index)| published.ports.get(*index));
    let attached = members.filter(|member| !member.egress_queues.is_empty());
    let bits = attached.map(|member| member.shared.accepted_offloads.get().to_bits());
    bits.reduce(|common, bits| common & bits).map_or(Offloads::NONE, Offloads::from_bits)
}

/// Adds to the ports' counters once for each run of consecutive frames to one port, because the
/// counters are shared by all workers.
fn count(published: &PublishedTables, verdicts: &[Verdict], coalesced: CoalesceResult) {
    let mut run: Option<(PortSlot, u64, u64)> = None;
    let add = |run: Option<(PortSlot, u64, u64)>| {
        let Some((slot, segments, units)) = run else { return };
        if let Some(port) = published.ports.get(slot.index()) {
            port.shared.counters.coalesced_segments.add(segments);
            port.shared.counters.coalesced_frames.add(units);
        }
    };
    for (index, verdict) in verdicts.iter().enumerate() {
        let is_merged = coalesced.is_merge_target(index);
        let Verdict::Unicast { egress } = *verdict else { continue };
        if !is_merged && !coalesced.was_merged_away(index) {
            continue;
        }
        let (segments, units) = match run {
            Some((slot, segments, units)) if slot == egress => (segments, units),
            other => {
                add(other);
                (0, 0)
            }
        };
        run = Some((egress, segments + 1, units + u64::from(is_merged)));
    }
    add(run);
}

#[cfg(test)]
#[path = "coalescing_tests.rs"]
mod tests;
