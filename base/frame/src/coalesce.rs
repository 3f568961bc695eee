//! Receive coalescing: segments of one TCP stream that stand in one batch become
//! one large frame, for egress ports that take large frames.
//!
//! The rules are those of Linux' GRO, and strict enough that cutting the large
//! frame again gives the very segments it was made of, byte for byte. A segment
//! joins the unit of its flow if
//! - everything below TCP is equal: addresses, types, tag, IPv4 type of service (so
//!   that congestion marks do not mix), time to live, don't-fragment; IPv6 traffic
//!   class, flow label, hop limit; and the IPv4 identifications count up, or, where
//!   fragmentation is forbidden, are all the same;
//! - it follows in sequence, with the same acknowledgement, window, options
//!   (timestamps included) and flags, except that CWR may stand on the first and FIN
//!   and PSH on the last, which ends the unit;
//! - the port it came in by lets it leave in any form;
//! - it has as much payload as the first one, or less, which ends the unit;
//! - its checksums are right: known to be, or found to be here, which is looked at
//!   last, so that a segment without neighbours costs no sum over its payload;
//! - the large frame stays within what IP can say.
//!
//! IPv4 options, IPv6 extension headers, fragments, SYN, RST and URG are never
//! joined.
//!
//! virtio has no way to say that all identifications are the same: a guest or
//! device that cuts such a frame again counts up. Receivers do not look at the
//! identification where fragmentation is forbidden (RFC 6864, section 4.1).
//!
//! Order: a unit stands at the place of its first segment, so the later ones move
//! forward, but never past another frame of their flow, because such a frame ends
//! the unit. Nothing is kept from one batch to the next, so nothing waits.

mod coalesced;
mod segment_view;

use crate::batch::BATCH_FRAMES_MAX;
use crate::checksum::update;
use crate::meta::{Checksum, FrameMeta, Gso, Offloads};
use crate::octets::{put, u8_at, u16_at};
use crate::tcp::{TCP_CHECKSUM_AT, TCP_FLAGS_AT, tcp_flags};
use crate::{FRAME_BYTES_MAX, Frame, GSO_HEADER_BYTES_MAX};

pub use coalesced::{Coalesced, Lane};
use segment_view::{Kind, SegmentView, classify};

/// Flows that are followed at a time. One more, and the oldest is no longer.
const UNITS_MAX: usize = 8;

/// The smallest segment with which a unit begins. Smaller ones gain less than the
/// search costs, and streams of them pay nothing but this comparison. It also
/// keeps a unit far below [`GSO_SEGMENTS_MAX`](crate::GSO_SEGMENTS_MAX).
const FIRST_PAYLOAD_BYTES_MIN: usize = 256;

/// The largest payload that is moved to another frame: beyond it, copying costs as
/// much as it saves.
const MOVED_PAYLOAD_BYTES_MAX: usize = 16 * 1024;

/// Headers of the smallest TCP segment, Ethernet's included.
const HEADER_BYTES_MIN: usize = 54;

/// Joins what can be joined among the first [`BATCH_FRAMES_MAX`] of `frames`, where
/// `lane` says where the frame at a place goes. It is asked only behind the first
/// frame that is large enough to begin a unit. Frames that are absorbed must not be
/// sent; their bytes are as they were.
///
/// A unit has [`FrameMeta::is_coalesced`] set, and a partial checksum. It is one
/// that the egress' offloads take as it is.
#[inline]
pub fn coalesce(frames: &mut [Frame], lane: impl FnMut(usize) -> Lane) -> Coalesced {
    let count = frames.len().min(BATCH_FRAMES_MAX);
    match frames.iter().take(count).position(may_begin) {
        Some(first) if frames.iter().take(count).skip(first + 1).any(may_move) => {
            coalesce_from(first, count, frames, lane)
        }
        _ => Coalesced::default(),
    }
}

/// Whether the frame is long enough to begin a unit.
#[inline]
fn may_begin(frame: &Frame) -> bool {
    frame.len() >= HEADER_BYTES_MIN + FIRST_PAYLOAD_BYTES_MIN
}

/// Whether the frame is short enough to be moved to another.
#[inline]
fn may_move(frame: &Frame) -> bool {
    frame.len() <= MOVED_PAYLOAD_BYTES_MAX + GSO_HEADER_BYTES_MAX
}

fn coalesce_from(
    first: usize,
    count: usize,
    frames: &mut [Frame],
    mut lane: impl FnMut(usize) -> Lane,
) -> Coalesced {
    let mut units = Units::default();
    let mut coalesced = Coalesced::default();
    for at in first..count {
        if units.is_empty() && !frames.get(at).is_some_and(may_begin) {
            continue;
        }
        match lane(at) {
            Lane::Apart => {}
            Lane::All => units.close_all(),
            Lane::Egress(egress, offloads) => {
                if let Some(unit) = units.handle(frames, at, egress, offloads) {
                    coalesced.absorbed |= 1 << at;
                    coalesced.units |= 1 << unit;
                }
            }
        }
    }
    coalesced
}

/// The units that segments may still join. Empty places are at the end.
#[derive(Default)]
struct Units {
    open: [Option<Unit>; UNITS_MAX],
    len: usize,
}

/// A frame that is one segment, or several that were joined, and may grow.
#[derive(Clone, Copy)]
struct Unit {
    egress: u16,
    /// Its place in the batch.
    at: usize,
    /// As it was when it began.
    first: SegmentView,
    /// Whether its checksums are known to be right.
    is_checked: bool,
    /// Segments it stands for.
    segments: u16,
    /// Sequence number of what comes next.
    next_sequence: u32,
    /// Whether all identifications are the same; `None` until that shows.
    has_fixed_identification: Option<bool>,
}

impl Units {
    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn close_all(&mut self) {
        self.len = 0;
    }

    fn close(&mut self, place: usize) {
        if let Some(open) = self.open.get_mut(place..self.len) {
            open.rotate_left(1);
            self.len -= 1;
        }
    }

    /// No frame for this egress may be moved past the present one.
    fn close_egress(&mut self, egress: u16) {
        for place in (0..self.len).rev() {
            let unit = self.open.get(place).and_then(Option::as_ref);
            if unit.is_some_and(|unit| unit.egress == egress) {
                self.close(place);
            }
        }
    }

    fn begin(&mut self, unit: Unit) {
        if self.len == UNITS_MAX {
            self.close(0);
        }
        if let Some(place) = self.open.get_mut(self.len) {
            *place = Some(unit);
            self.len += 1;
        }
    }

    /// The place of the unit that the frame at `at` became part of.
    fn handle(
        &mut self,
        frames: &mut [Frame],
        at: usize,
        egress: u16,
        takes: Offloads,
    ) -> Option<usize> {
        let (before, [frame, ..]) = frames.split_at_mut_checked(at)? else { return None };
        let (view, may_join) = match classify(frame) {
            Kind::NotTcp => return None,
            Kind::Unreadable => {
                self.close_egress(egress);
                return None;
            }
            Kind::Alone(view) => (view, false),
            Kind::Data(view) => (view, true),
        };
        let place = self.open.iter().take(self.len).flatten().position(|unit| {
            unit.egress == egress
                && before
                    .get(unit.at)
                    .is_some_and(|head| view.is_same_flow(frame, &unit.first, head))
        });
        if let Some(place) = place {
            let unit = self.open.get_mut(place).and_then(Option::as_mut);
            let joined = unit.filter(|_| may_join).and_then(|unit| {
                let head = before.get_mut(unit.at)?;
                let may_grow = unit.may_grow(&view);
                unit.join(head, frame, &view).then_some((unit.at, may_grow))
            });
            if !matches!(joined, Some((_, true))) {
                self.close(place);
            }
            if let Some((unit, _)) = joined {
                return Some(unit);
            }
        }
        if may_join {
            if let Some(unit) = Unit::begun_by(frame, view, at, egress, takes) {
                self.begin(unit);
            }
        }
        None
    }
}

impl Unit {
    /// The unit whose first segment this is, if others may join it.
    fn begun_by(
        frame: &Frame,
        view: SegmentView,
        at: usize,
        egress: u16,
        takes: Offloads,
    ) -> Option<Self> {
        let gso = view.gso();
        let is_full = view.payload_bytes % usize::from(view.segment_bytes) == 0;
        let may_begin = usize::from(view.segment_bytes) >= FIRST_PAYLOAD_BYTES_MIN
            && frame.len() + FIRST_PAYLOAD_BYTES_MIN <= FRAME_BYTES_MAX
            && is_full
            && view.flags & (tcp_flags::FIN | tcp_flags::PSH) == 0
            && takes.takes(gso);
        may_begin.then_some(Self {
            egress,
            at,
            first: view,
            is_checked: false,
            segments: view.segments(),
            next_sequence: view.sequence.wrapping_add(view.payload_bytes as u32),
            has_fixed_identification: view.has_fixed_identification,
        })
    }

    /// Moves the payload of `frame` behind that of `head`, if the rules allow it.
    fn join(&mut self, head: &mut Frame, frame: &mut Frame, view: &SegmentView) -> bool {
        let first = &self.first;
        let follows = view.sequence == self.next_sequence
            && view.payload_bytes <= MOVED_PAYLOAD_BYTES_MAX
            && view.flags & tcp_flags::CWR == 0
            && (view.segment_bytes == first.segment_bytes
                || (view.gso.is_none() && view.segment_bytes < first.segment_bytes))
            && view.has_same_headers(frame, first, head);
        if !follows {
            return false;
        }
        let Some(is_fixed) = self.numbering_with(view) else { return false };
        // What is summed, and what is joined, are bytes that nobody else can write.
        head.gather();
        frame.gather();
        self.is_checked = self.is_checked || first.is_checksum_right(head);
        if !self.is_checked || !view.is_checksum_right(frame) {
            return false;
        }
        let old_len = head.len();
        let len = old_len + view.payload_bytes;
        if len - first.counted_from() > usize::from(u16::MAX) || len > FRAME_BYTES_MAX {
            return false;
        }
        let payload = frame.bytes().get(view.payload_at..).unwrap_or_default();
        head.set_len(len);
        if !put(head.bytes_mut(), old_len, payload) {
            head.set_len(old_len);
            return false;
        }
        self.segments = self.segments.saturating_add(view.segments());
        self.next_sequence = self.next_sequence.wrapping_add(view.payload_bytes as u32);
        self.has_fixed_identification = Some(is_fixed);
        self.finish(head, view.flags);
        true
    }

    /// Whether all identifications are the same if this segment joins; `None` if it
    /// has another than can be.
    fn numbering_with(&self, view: &SegmentView) -> Option<bool> {
        let first = &self.first;
        if first.is_ipv6 {
            return Some(false);
        }
        let counted = first.identification.wrapping_add(self.segments);
        let counts_up =
            view.identification == counted && view.has_fixed_identification != Some(true);
        let stays = view.identification == first.identification
            && first.forbids_fragments
            && view.has_fixed_identification != Some(false);
        match self.has_fixed_identification {
            Some(true) => stays.then_some(true),
            Some(false) => counts_up.then_some(false),
            None if counts_up => Some(false),
            None => stays.then_some(true),
        }
    }

    /// Makes headers and metadata of the head true of what it is now.
    fn finish(&self, head: &mut Frame, flags: u8) {
        let first = &self.first;
        let network_at = first.network_at;
        let length = (head.len() - first.counted_from()) as u16;
        let transport_bytes = (head.len() - first.transport_at) as u16;
        let bytes = head.bytes_mut();
        if first.is_ipv6 {
            put(bytes, network_at + 4, &length.to_be_bytes());
        } else {
            let old_length = u16_at(bytes, network_at + 2).unwrap_or_default();
            let old_checksum = u16_at(bytes, network_at + 10).unwrap_or_default();
            put(bytes, network_at + 2, &length.to_be_bytes());
            let checksum = update(old_checksum, old_length, length);
            put(bytes, network_at + 10, &checksum.to_be_bytes());
        }
        let flags_at = first.transport_at + TCP_FLAGS_AT;
        let ending = flags & (tcp_flags::FIN | tcp_flags::PSH);
        let flags = u8_at(bytes, flags_at).unwrap_or_default() | ending;
        put(bytes, flags_at, &[flags]);
        let pseudo = first.pseudo.plus(transport_bytes).word();
        put(bytes, first.transport_at + TCP_CHECKSUM_AT, &pseudo.to_be_bytes());
        // Headers of what may be joined are shorter than 256 bytes.
        let start = first.transport_at as u16;
        head.meta = FrameMeta {
            checksum: Checksum::Partial { start, offset: TCP_CHECKSUM_AT as u16 },
            gso: Some(first.gso()),
            is_coalesced: true,
            leaves_as: head.meta.leaves_as,
            has_fixed_identification: self.has_fixed_identification == Some(true),
            tag: head.meta.tag,
        };
    }

    /// Whether more may follow after `last` has joined.
    fn may_grow(&self, last: &SegmentView) -> bool {
        last.payload_bytes % usize::from(self.first.segment_bytes) == 0
            && last.flags & (tcp_flags::FIN | tcp_flags::PSH) == 0
    }
}

impl SegmentView {
    /// What a frame of such segments is.
    fn gso(&self) -> Gso {
        Gso {
            kind: self.kind(),
            segment_bytes: self.segment_bytes,
            ecn: self.flags & tcp_flags::CWR != 0,
        }
    }
}

#[cfg(test)]
mod tests;
