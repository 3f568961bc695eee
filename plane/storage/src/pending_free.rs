//! Request that waits to free space.

use suimon_image::ByteRange;

/// Request that frees space as soon as no overlapping request is in flight: the freed space may be
/// reused before such a request ends.
#[derive(Debug)]
pub(crate) struct PendingFree {
    /// Number of the request.
    pub(crate) number: usize,
    pub(crate) range: ByteRange,
    pub(crate) is_discard: bool,
    /// Number of requests in flight that overlap the range. No others begin meanwhile.
    pub(crate) overlapping: usize,
    /// True if the request waits for metadata or a commit.
    pub(crate) awaits_obstacle: bool,
}

impl PendingFree {
    /// Returns true if another request for this range may begin. A discard makes progress with each
    /// commit that it waits for. Zeros need room for all their changes at once, which other requests
    /// would use up.
    pub(crate) fn lets_pass(&self, range: ByteRange) -> bool {
        !self.range.overlaps(range) && (self.is_discard || !self.awaits_obstacle)
    }

    /// Records that a request for this range is not in flight any more.
    pub(crate) fn handle_ended(&mut self, range: ByteRange) {
        if self.range.overlaps(range) {
            self.overlapping = self.overlapping.saturating_sub(1);
        }
    }

    /// Returns the number of the request if it can be carried out.
    pub(crate) fn poll(&self) -> Option<usize> {
        (self.overlapping == 0).then_some(self.number)
    }
}
