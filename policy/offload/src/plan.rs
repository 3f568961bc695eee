//! What has to happen to one frame at one egress.

use suimon_frame::{Checksum, FrameMeta, LeavesAs, Offloads};

/// What has to happen to a frame before an egress takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EgressStep {
    /// Nothing.
    AsIs,
    /// [`complete_checksum`](suimon_frame::complete_checksum).
    CompleteChecksum,
    /// [`segment`](suimon_frame::segment).
    Segment {
        /// Whether the egress completes the segments' checksums.
        partial_checksum: bool,
    },
}

/// What has to happen to a frame with this metadata before an egress with these
/// offloads takes it, and the port it came in by lets it go. Called for every frame
/// and egress.
#[inline]
pub const fn plan(frame: &FrameMeta, egress: Offloads) -> EgressStep {
    let egress = match frame.leaves_as {
        LeavesAs::Any => egress,
        LeavesAs::Segments => egress.without_segmentation(),
        LeavesAs::Plain => Offloads::NONE,
    };
    match (frame.gso, frame.checksum) {
        (Some(gso), _) if egress.takes(gso) => EgressStep::AsIs,
        (Some(_), _) => EgressStep::Segment { partial_checksum: egress.checksum },
        (None, Checksum::Partial { .. }) if !egress.checksum => EgressStep::CompleteChecksum,
        (None, _) => EgressStep::AsIs,
    }
}

#[cfg(test)]
mod tests;
