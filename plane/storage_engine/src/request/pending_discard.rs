//! Discard or write of zeros that is pending until overlapping requests in flight have ended.

use suimon_image::ByteRange;

/// Discard or write of zeros that starts when no overlapping request is in flight. Freed space may
/// be reused at once, so an overlapping request must end first.
#[derive(Debug)]
pub(crate) struct PendingDiscard {
    /// Number of the request on this worker.
    pub(crate) request: usize,
    pub(crate) range: ByteRange,
    pub(crate) is_discard: bool,
    /// Number of requests in flight that overlap the range. No further ones start meanwhile.
    pub(crate) overlapping_requests: usize,
    /// True if the request waits for a metadata read or a commit.
    pub(crate) awaits_blocking_operation: bool,
}

impl PendingDiscard {
    /// Returns true if another request for this range may start while this one is pending. A
    /// discard makes progress with each commit that it waits for, so requests for other ranges may.
    /// A write of zeros needs room for all its changes at once, which other requests would use.
    pub(crate) fn permits(&self, range: ByteRange) -> bool {
        !self.range.overlaps(range) && (self.is_discard || !self.awaits_blocking_operation)
    }

    /// Records that a request for `range` has ended.
    pub(crate) fn handle_request_ended(&mut self, range: ByteRange) {
        if self.range.overlaps(range) {
            self.overlapping_requests = self.overlapping_requests.saturating_sub(1);
        }
    }

    /// Returns the number of the discard or write of zeros if it can be executed now, otherwise
    /// `None`.
    pub(crate) fn poll(&self) -> Option<usize> {
        (self.overlapping_requests == 0).then_some(self.request)
    }
}
