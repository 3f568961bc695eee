//! Stages that a worker's time is attributed to.

/// Stage of a worker's processing, to which its time is attributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Receiving frames from an ingress queue: copying from a ring or reading from a device,
    /// validation, and captures.
    CopyIn,
    /// Parsing of headers and the forwarding decision.
    Classify,
    /// Search for segments of streams, and coalescing.
    Coalesce,
    /// Segmentation for an egress that does not support it, without the checksums of the segments.
    Segment,
    /// Completion of checksums of frames and segments for an egress that does not support it.
    Checksum,
    /// Transmission of frames to egress queues, or to the workers that own these.
    CopyOut,
    /// Making transmitted frames visible, and notification of receivers.
    Notify,
    /// Requests of disks: receipt, translation, submission to the device and completion.
    Storage,
    /// Search for work: empty polls, descriptors, messages, commands of the control plane, arming
    /// of notifications.
    Poll,
    /// Sleep until a notification or a deadline.
    Idle,
}

impl Stage {
    /// Number of variants.
    pub const COUNT: usize = 10;

    /// Every stage, in the order of a frame's processing.
    pub const ALL: [Self; Self::COUNT] = [
        Self::CopyIn,
        Self::Classify,
        Self::Coalesce,
        Self::Segment,
        Self::Checksum,
        Self::CopyOut,
        Self::Notify,
        Self::Storage,
        Self::Poll,
        Self::Idle,
    ];

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// Nanoseconds spent in each stage, indexed by [`Stage`].
pub(crate) type StageNanoseconds = [u64; Stage::COUNT];
