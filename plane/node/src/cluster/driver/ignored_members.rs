//! Members that were ignored because too many are known. They are considered when others leave.

/// Keys of members that were ignored for lack of room.
#[derive(Default)]
pub(super) struct IgnoredMembers {
    /// Highest revision of etcd of which a key of a member or of a running node was processed.
    pub(super) processed_revision: u64,
    /// True if keys of members were ignored.
    pub(super) has_members: bool,
    /// True if keys of running nodes were ignored.
    pub(super) has_running_nodes: bool,
}

impl IgnoredMembers {
    pub(super) fn record_processed_revision(&mut self, revision: u64) {
        self.processed_revision = self.processed_revision.max(revision);
    }
}
