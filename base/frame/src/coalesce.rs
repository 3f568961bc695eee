//! Receive coalescing: segments of one TCP stream in a batch are merged into a large frame, for
//! egress ports that accept large frames.
//!
//! The rules follow Linux' GRO and are strict enough that segmentation reproduces the original
//! segments byte for byte. The segments merged into one large frame form a *merge group*. A segment
//! is merged into the merge group of its flow if
//! - everything below TCP is equal: addresses, types, tag, IPv4 type of service (so that congestion
//!   marks do not mix), time to live, don't-fragment; IPv6 traffic class, flow label, hop limit;
//!   and the IPv4 identifications are consecutive, or all equal where fragmentation is forbidden;
//! - it continues the sequence numbers, with the same acknowledgement, window, options (including
//!   timestamps) and flags, except that the first may have CWR and the last FIN and PSH, which end
//!   the group;
//! - the ingress port permits every form on egress ([`EgressForm::Any`](crate::EgressForm));
//! - its payload is as long as that of the first segment, or shorter, which ends the group;
//! - its checksums are correct: known to be, or verified here as the last step, so that a segment
//!   without neighbours costs no sum over its payload;
//! - the large frame does not exceed the length limit of IP.
//!
//! Segments with IPv4 options, IPv6 extension headers, SYN, RST or URG, and fragments are never
//! merged.
//!
//! virtio cannot represent equal identifications: a guest or device that segments such a frame
//! produces consecutive ones. Receivers ignore the identification where fragmentation is forbidden
//! (RFC 6864, section 4.1).
//!
//! Order: the large frame takes the position of the group's first segment. Later segments move
//! forward, but never past another frame of their flow, because such a frame ends the group. No
//! state is kept between batches, so no frame is delayed.

mod coalesce_result;
mod segment_view;

use crate::batch::BATCH_FRAMES_MAX;
use crate::checksum::update;
use crate::meta::{Checksum, FrameMeta, Gso, Offloads};
use crate::octets::{put, u8_at, u16_at};
use crate::tcp::{TCP_CHECKSUM_AT, TCP_FLAGS_AT, tcp_flags};
use crate::{FRAME_BYTES_MAX, Frame, GSO_HEADER_BYTES_MAX};

pub use coalesce_result::{CoalesceResult, CoalesceTarget};
use segment_view::{SegmentClass, SegmentView, classify};

/// Maximum number of open merge groups, one per flow; a further flow replaces the oldest group.
const UNITS_MAX: usize = 8;

/// Minimum payload of a merge group's first segment in bytes. Smaller segments gain less than the
/// search costs, and streams of them cost only this comparison. Also keeps groups far below
/// [`GSO_SEGMENTS_MAX`](crate::GSO_SEGMENTS_MAX).
const FIRST_PAYLOAD_BYTES_MIN: usize = 256;

/// Maximum payload in bytes that is copied to another frame; beyond it, copying costs as much as it
/// saves.
const MOVED_PAYLOAD_BYTES_MAX: usize = 16 * 1024;

/// Header length of the smallest TCP segment in bytes, including Ethernet.
const HEADER_BYTES_MIN: usize = 54;

/// Coalesces the first [`BATCH_FRAMES_MAX`] of `frames`. `lane` returns the destination of the
/// frame at an index. It is called in ascending order, from the first frame on that is large enough
/// to start a merge group. Frames that were merged into another one must not be sent; their bytes
/// are unchanged.
///
/// The resulting large frames have [`FrameMeta::is_coalesced`] set and a partial checksum, and
/// conform to the offloads of their egress.
#[inline]
pub fn coalesce(frames: &mut [Frame], lane: impl FnMut(usize) -> CoalesceTarget) -> CoalesceResult {
    let count = frames.len().min(BATCH_FRAMES_MAX);
    match frames.iter().take(count).position(can_start) {
        Some(first) if frames.iter().take(count).skip(first + 1).any(can_merge) => {
            coalesce_from(first, count, frames, lane)
        }
        _ => CoalesceResult::default(),
    }
}

/// Returns true if the frame is long enough to start a merge group.
#[inline]
fn can_start(frame: &Frame) -> bool {
    frame.len() >= HEADER_BYTES_MIN + FIRST_PAYLOAD_BYTES_MIN
}

/// Returns true if the frame is short enough to be merged into another.
#[inline]
fn can_merge(frame: &Frame) -> bool {
    frame.len() <= MOVED_PAYLOAD_BYTES_MAX + GSO_HEADER_BYTES_MAX
}

fn coalesce_from(
    first: usize,
    count: usize,
    frames: &mut [Frame],
    mut lane: impl FnMut(usize) -> CoalesceTarget,
) -> CoalesceResult {
    let mut units = MergeGroups::default();
    let mut coalesced = CoalesceResult::default();
    for index in first..count {
        if units.is_empty() && !frames.get(index).is_some_and(can_start) {
            continue;
        }
        match lane(index) {
            CoalesceTarget::Excluded => {}
            CoalesceTarget::Multiple => units.close_all(),
            CoalesceTarget::Egress(egress, offloads) => {
                if let Some(unit) = units.handle(frames, index, egress, offloads) {
                    coalesced.merged_mask |= 1 << index;
                    coalesced.merge_target_mask |= 1 << unit;
                }
            }
        }
    }
    coalesced
}

/// Open merge groups, to which segments may be added: the first `len` entries, oldest first.
#[derive(Default)]
struct MergeGroups {
    open: [Option<MergeGroup>; UNITS_MAX],
    len: usize,
}

/// Merge group: the segments merged into one large frame so far, which further segments may join.
#[derive(Clone, Copy)]
struct MergeGroup {
    egress: u16,
    /// Index of the first segment in the batch.
    index: usize,
    /// Header fields of the first segment before merging.
    first: SegmentView,
    /// True if the checksums of the first segment were verified.
    is_checked: bool,
    /// Number of segments merged into the group.
    segments: u16,
    /// TCP sequence number that the next segment must have.
    next_sequence: u32,
    /// True if the IPv4 identifications are all equal, false if they are consecutive; `None` if not
    /// yet determined.
    has_fixed_identification: Option<bool>,
}

impl MergeGroups {
    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn close_all(&mut self) {
        self.len = 0;
    }

    fn close(&mut self, index: usize) {
        if let Some(open) = self.open.get_mut(index..self.len) {
            open.rotate_left(1);
            self.len -= 1;
        }
    }

    /// Closes the merge groups of an egress: no later frame for it may move past the current one.
    fn close_egress(&mut self, egress: u16) {
        for index in (0..self.len).rev() {
            let unit = self.open.get(index).and_then(Option::as_ref);
            if unit.is_some_and(|unit| unit.egress == egress) {
                self.close(index);
            }
        }
    }

    fn begin(&mut self, unit: MergeGroup) {
        if self.len == UNITS_MAX {
            self.close(0);
        }
        if let Some(slot) = self.open.get_mut(self.len) {
            *slot = Some(unit);
            self.len += 1;
        }
    }

    /// Processes the frame at `frame_index`. Returns the index of the frame that it was merged
    /// into, or `None` if it was not merged.
    fn handle(
        &mut self,
        frames: &mut [Frame],
        frame_index: usize,
        egress: u16,
        offloads: Offloads,
    ) -> Option<usize> {
        let (before, [frame, ..]) = frames.split_at_mut_checked(frame_index)? else { return None };
        let (view, may_join) = match classify(frame) {
            SegmentClass::NotTcp => return None,
            SegmentClass::Unclassifiable => {
                self.close_egress(egress);
                return None;
            }
            SegmentClass::NotMergeable(view) => (view, false),
            SegmentClass::Data(view) => (view, true),
        };
        let index = self.open.iter().take(self.len).flatten().position(|unit| {
            unit.egress == egress
                && before
                    .get(unit.index)
                    .is_some_and(|head| view.is_same_flow(frame, &unit.first, head))
        });
        if let Some(index) = index {
            let unit = self.open.get_mut(index).and_then(Option::as_mut);
            let joined = unit.filter(|_| may_join).and_then(|unit| {
                let head = before.get_mut(unit.index)?;
                let may_grow = unit.may_grow(&view);
                unit.join(head, frame, &view).then_some((unit.index, may_grow))
            });
            if !matches!(joined, Some((_, true))) {
                self.close(index);
            }
            if let Some((unit, _)) = joined {
                return Some(unit);
            }
        }
        if may_join {
            if let Some(unit) = MergeGroup::new(frame, view, frame_index, egress, offloads) {
                self.begin(unit);
            }
        }
        None
    }
}

impl MergeGroup {
    /// Creates the merge group that starts with this segment; `None` if no segment may follow it.
    fn new(
        frame: &Frame,
        view: SegmentView,
        frame_index: usize,
        egress: u16,
        offloads: Offloads,
    ) -> Option<Self> {
        let gso = view.gso();
        let is_full = view.payload_bytes % usize::from(view.segment_bytes) == 0;
        let may_begin = usize::from(view.segment_bytes) >= FIRST_PAYLOAD_BYTES_MIN
            && frame.len() + FIRST_PAYLOAD_BYTES_MIN <= FRAME_BYTES_MAX
            && is_full
            && view.flags & (tcp_flags::FIN | tcp_flags::PSH) == 0
            && offloads.accepts(gso);
        may_begin.then_some(Self {
            egress,
            index: frame_index,
            first: view,
            is_checked: false,
            segments: view.segment_count(),
            next_sequence: view.sequence.wrapping_add(view.payload_bytes as u32),
            has_fixed_identification: view.has_fixed_identification,
        })
    }

    /// Appends the payload of `frame` to the large frame `head` and returns true. Returns false,
    /// with the bytes of both unchanged, if the rules do not permit it.
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
        // Checksums and copies use private memory, which the source cannot modify.
        head.linearize();
        frame.linearize();
        self.is_checked = self.is_checked || first.has_correct_checksum(head);
        if !self.is_checked || !view.has_correct_checksum(frame) {
            return false;
        }
        let old_len = head.len();
        let len = old_len + view.payload_bytes;
        if len - first.ip_length_base() > usize::from(u16::MAX) || len > FRAME_BYTES_MAX {
            return false;
        }
        let payload = frame.bytes().get(view.payload_at..).unwrap_or_default();
        head.set_len(len);
        if !put(head.bytes_mut(), old_len, payload) {
            head.set_len(old_len);
            return false;
        }
        self.segments = self.segments.saturating_add(view.segment_count());
        self.next_sequence = self.next_sequence.wrapping_add(view.payload_bytes as u32);
        self.has_fixed_identification = Some(is_fixed);
        self.finish(head, view.flags);
        true
    }

    /// Returns true if the group's identifications are all equal with this segment included, false
    /// if they are consecutive (always for IPv6), and `None` if the segment's identification does
    /// not fit.
    fn numbering_with(&self, view: &SegmentView) -> Option<bool> {
        let first = &self.first;
        if first.is_ipv6 {
            return Some(false);
        }
        let expected = first.identification.wrapping_add(self.segments);
        let counts_up =
            view.identification == expected && view.has_fixed_identification != Some(true);
        let is_constant = view.identification == first.identification
            && first.forbids_fragments
            && view.has_fixed_identification != Some(false);
        match self.has_fixed_identification {
            Some(true) => is_constant.then_some(true),
            Some(false) => counts_up.then_some(false),
            None if counts_up => Some(false),
            None => is_constant.then_some(true),
        }
    }

    /// Updates the headers and metadata of the large frame `head` after a merge. `flags`: TCP flags
    /// of the segment merged last.
    fn finish(&self, head: &mut Frame, flags: u8) {
        let first = &self.first;
        let network_at = first.network_at;
        let length = (head.len() - first.ip_length_base()) as u16;
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
        let pseudo = first.pseudo_header_sum.add_word(transport_bytes).word();
        put(bytes, first.transport_at + TCP_CHECKSUM_AT, &pseudo.to_be_bytes());
        // Headers of mergeable segments are shorter than 256 bytes.
        let start = first.transport_at as u16;
        head.meta = FrameMeta {
            checksum: Checksum::Partial { start, offset: TCP_CHECKSUM_AT as u16 },
            gso: Some(first.gso()),
            is_coalesced: true,
            egress_form: head.meta.egress_form,
            has_fixed_identification: self.has_fixed_identification == Some(true),
            tag: head.meta.tag,
        };
    }

    /// Returns true if further segments may follow `last` in the merge group.
    fn may_grow(&self, last: &SegmentView) -> bool {
        last.payload_bytes % usize::from(self.first.segment_bytes) == 0
            && last.flags & (tcp_flags::FIN | tcp_flags::PSH) == 0
    }
}

impl SegmentView {
    /// Returns the GSO metadata of a frame of such segments.
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
