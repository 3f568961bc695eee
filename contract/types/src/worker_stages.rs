//! Breakdown of a worker's time.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Time of a worker since its start in ns, by activity (stage). Each nanosecond counts for one
/// stage; the stages add up to the total. While the worker runs, the values are up to 1 ms old, or
/// one round of its queues if that takes longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "ProcessorStages")]
#[schema(as = ProcessorStages)]
pub struct WorkerStages {
    /// Taking frames from queues: copies out of rings or reads from devices, checks, and ingress
    /// capture.
    pub copy_in_ns: u64,
    /// Parsing headers and determining destinations.
    pub classify_ns: u64,
    /// Finding and coalescing segments of streams.
    pub coalesce_ns: u64,
    /// Segmenting large frames, except checksums of the segments.
    pub segment_ns: u64,
    /// Completing checksums of frames and segments.
    pub checksum_ns: u64,
    /// Putting frames into queues, or handing them to the workers that own these.
    pub copy_out_ns: u64,
    /// Publishing the frames and notifying the other sides.
    pub notify_ns: u64,
    /// Taking, translating, submitting and completing disk requests.
    #[serde(default)]
    pub storage_ns: u64,
    /// Searching for work: polls without result, descriptors, messages of other workers and the
    /// control plane, entering and leaving sleep.
    pub poll_ns: u64,
    /// Sleeping, including the current sleep up to the time of the query.
    pub idle_ns: u64,
}

impl WorkerStages {
    /// Number of stages in the breakdown.
    pub const COUNT: usize = 10;

    /// Name and meaning of each stage, for the reference page.
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
            "Polls of queues without work, polls of file descriptors, messages and commands from \
             other threads, and falling asleep and waking up.",
        ),
        ("idle", "Asleep."),
    ];

    /// Returns the names of the stages, as used in metrics and tables, with the time of each in ns.
    pub const fn named_durations(&self) -> [(&'static str, u64); Self::COUNT] {
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
