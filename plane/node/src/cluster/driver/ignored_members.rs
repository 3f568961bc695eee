//! Members that were ignored because too many are known. They are considered when others leave.

/// Keys of members that were ignored for lack of room.
#[derive(Default)]
pub(super) struct IgnoredMembers {
    /// Highest revision of etcd of which a key of a member or of a running node was processed.
    pub(super) processed: u64,
    /// True if keys of members were ignored.
    pub(super) has_members: bool,
    /// True if keys of running nodes were ignored.
    pub(super) has_alive: bool,
}

impl IgnoredMembers {
    pub(super) fn note_processed(&mut self, revision: u64) {
        self.processed = self.processed.max(revision);
    }
}
