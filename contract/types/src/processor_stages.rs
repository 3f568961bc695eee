//! Where a processor's time goes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A processor's time since it started, in ns by what it did. Each nanosecond counts
/// once: the stages add up to all of its time. While it works the account is about a
/// millisecond old, or one round of its queues if that takes longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProcessorStages {
    /// Frames were taken from queues: copied out of rings or read from devices,
    /// checked, and captured on their way in.
    pub copy_in_ns: u64,
    /// Headers were read and destinations decided.
    pub classify_ns: u64,
    /// Segments of streams were looked for and joined.
    pub coalesce_ns: u64,
    /// Large frames were cut, without the checksums of the segments.
    pub segment_ns: u64,
    /// Checksums of frames and of segments were completed.
    pub checksum_ns: u64,
    /// Frames were handed to queues, or to the processors that own those.
    pub copy_out_ns: u64,
    /// What was handed over was made visible, and the other sides were notified.
    pub notify_ns: u64,
    /// Requests of disks were taken, translated, handed to the device and answered.
    #[serde(default)]
    pub storage_ns: u64,
    /// Work was looked for: polls that brought nothing, descriptors, messages of other
    /// processors and of the control plane, the way into sleep and out of it.
    pub poll_ns: u64,
    /// It slept; until it was asked, if it sleeps now.
    pub idle_ns: u64,
}

impl ProcessorStages {
    /// How many stages there are.
    pub const COUNT: usize = 10;

    /// Names of the stages and their meanings, for the reference page.
    pub const MEANINGS: [(&str, &str); Self::COUNT] = [
        (
            "copy_in",
            "Frames taken from queues: copy from the guest's ring, read from TAP or socket, checks of headers \
             and metadata, captures.",
        ),
        ("classify", "Headers parsed, port security, learning, destination lookup."),
        ("coalesce", "Segments of one stream found and coalesced."),
        ("segment", "Large frames segmented in software, without the checksums of the segments."),
        ("checksum", "Checksums completed in software."),
        (
            "copy_out",
            "Frames handed to queues: copy into the guest's ring, write to TAP or socket, transfer to another \
             worker.",
        ),
        ("notify", "Used buffers published, guests and devices notified, other workers woken."),
        ("storage", "Disk requests taken, translated, submitted to the device and completed."),
        (
            "poll",
            "Polls without result, descriptors, messages and commands from other threads, entry to sleep and \
             exit from it.",
        ),
        ("idle", "Asleep."),
    ];

    /// Names of the stages, as metrics and tables have them, and the time of each.
    pub const fn named(&self) -> [(&'static str, u64); Self::COUNT] {
        [
            ("copy_in", self.copy_in_ns),
            ("classify", self.classify_ns),
            ("coalesce", self.coalesce_ns),
            ("segment", self.segment_ns),
            ("checksum", self.checksum_ns),
            ("copy_out", self.copy_out_ns),
            ("notify", self.notify_ns),
            ("storage", self.storage_ns),
            ("poll", self.poll_ns),
            ("idle", self.idle_ns),
        ]
    }
}
