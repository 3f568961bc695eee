//! Determines the software step that a frame requires before it leaves by an egress port.

use suimon_frame::{Checksum, EgressForm, FrameMeta, Offloads};

/// Software step that a frame requires before an egress port accepts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EgressStep {
    /// The frame is forwarded unchanged.
    AsIs,
    /// Complete the checksum with [`complete_checksum`](suimon_frame::complete_checksum).
    CompleteChecksum,
    /// Segment the frame with [`segment`](suimon_frame::segment).
    Segment {
        /// True if the egress port completes the segments' checksums; false if the segmentation
        /// must.
        keeps_partial_checksum: bool,
    },
}

/// Returns the step that a frame with this metadata requires before it may leave by a port with the
/// offloads `egress`, and the ingress port's restrictions are met. Called for every frame and
/// egress port.
#[inline]
pub const fn egress_step(frame: &FrameMeta, egress: Offloads) -> EgressStep {
    let egress = match frame.egress_form {
        EgressForm::Any => egress,
        EgressForm::Segmented => egress.without_segmentation(),
        EgressForm::Complete => Offloads::NONE,
    };
    match (frame.gso, frame.checksum) {
        (Some(gso), _) if egress.accepts(gso) => EgressStep::AsIs,
        (Some(_), _) => EgressStep::Segment { keeps_partial_checksum: egress.checksum },
        (None, Checksum::Partial { .. }) if !egress.checksum => EgressStep::CompleteChecksum,
        (None, _) => EgressStep::AsIs,
    }
}

#[cfg(test)]
mod tests;
