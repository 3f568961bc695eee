//! Store shared by the nodes of a cluster: transactions, watches, leases and elections.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

/// Failure of an operation on the cluster store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("etcd of the cluster: {detail}")]
pub struct ClusterStoreError {
    /// Kind of the failure, on which the reaction of callers depends.
    pub kind: ClusterStoreErrorKind,
    /// Failure, naming the peer, and what to do next.
    pub detail: String,
}

/// Kind of a cluster store failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterStoreErrorKind {
    /// No member with a known leader was reachable. The operation was not performed.
    Unreachable,
    /// A request was sent and not answered; the operation may or may not have been performed.
    OutcomeUnknown,
    /// User name, password or certificate rejected.
    NotAllowed,
    /// Quota or request size limit of the store exceeded.
    Full,
    /// The lease has expired or was revoked.
    LeaseEnded,
    /// The request is invalid, or the store reported an internal error.
    Refused,
}

/// Key with its value and revisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterEntry {
    /// Key, unique in the store.
    pub key: String,
    /// Value stored under the key.
    pub value: Vec<u8>,
    /// Store revision that created the key.
    pub created_revision: u64,
    /// Store revision of the last write to the key.
    pub modified_revision: u64,
}

/// Consistent snapshot of all keys with a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterView {
    /// Store revision of the snapshot; monotonically increasing.
    pub revision: u64,
    /// Entries in ascending order of keys.
    pub entries: Vec<ClusterEntry>,
}

/// Precondition that a transaction checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterCondition {
    /// The key does not exist.
    KeyAbsent(String),
    /// The key exists and was created at this revision: the term of the leader elected by it
    /// continues.
    KeyCreatedAt(String, u64),
    /// The key has not been written since this revision.
    KeyUnmodifiedSince(String, u64),
}

/// Change that a transaction makes to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterChange {
    /// Sets the value. With a lease, the key is removed when the lease expires.
    Put(String, Vec<u8>, Option<ClusterLeaseId>),
    /// Removes the key if it exists.
    Remove(String),
}

/// Identifier of a lease in the cluster store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterLeaseId(pub i64);

/// Result of a committed or rejected transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterCommitResult {
    /// Every change was applied, at this revision.
    Committed(u64),
    /// A precondition did not hold; nothing was changed.
    ConditionFailed,
}

/// Result of running for election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterElectionResult {
    /// The candidate was elected for the term of this number, which is higher than all earlier
    /// terms. The leader fences its writes with [`ClusterCondition::KeyCreatedAt`] and this number.
    Elected(u64),
    /// Another candidate is the leader: its identity and term.
    OtherLeader(Vec<u8>, u64),
}

/// Receiver of changes. Called on a thread of the store; must not block.
pub trait ClusterObserver: Send + Sync {
    /// Replaces the observed state with a complete snapshot.
    fn handle_snapshot(&self, view: ClusterView);

    /// Applies changes since the previous call: all changes of one revision together, in order,
    /// each as key and new entry (`None`: removed).
    fn handle_changes(&self, revision: u64, changes: Vec<(String, Option<ClusterEntry>)>);

    /// Reports that the watch is interrupted. It resumes automatically, from the last revision if
    /// possible and otherwise with a snapshot.
    fn handle_interruption(&self, error: &ClusterStoreError);
}

/// Active watch. Dropping it ends the watch.
pub trait ClusterWatch: Send + Sync {}

/// Lease that is kept alive until it is dropped, which revokes it.
pub trait ClusterLease: Send + Sync {
    /// Returns the identifier of the lease.
    fn id(&self) -> ClusterLeaseId;

    /// Returns the remaining validity by this host's monotonic clock if no further keep-alive
    /// succeeds, counted from the start of the last successful keep-alive request. Zero if the
    /// lease has expired or may have.
    fn remaining(&self) -> Duration;
}

/// Linearizable key-value store of a cluster: a read returns the last committed write of any node.
/// All calls block, for at most the time configured for the store.
pub trait ClusterKvStore: Send + Sync {
    /// Returns all keys with a prefix.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    fn read(&self, prefix: &str) -> Result<ClusterView, ClusterStoreError>;

    /// Applies all changes if all conditions hold, and otherwise none. Conditions and changes
    /// together must not exceed [`ClusterKvStore::changes_max`].
    ///
    /// # Errors
    /// Fails with nothing changed, unless the kind is [`ClusterStoreErrorKind::OutcomeUnknown`].
    fn commit(
        &self,
        conditions: &[ClusterCondition],
        changes: &[ClusterChange],
    ) -> Result<ClusterCommitResult, ClusterStoreError>;

    /// Returns the maximum number of conditions and changes of a transaction.
    fn changes_max(&self) -> usize;

    /// Starts a watch: delivers a snapshot of all keys with a prefix to `observer`, then their
    /// changes.
    ///
    /// # Errors
    /// Fails if the watch cannot be started.
    fn watch(
        &self,
        prefix: &str,
        observer: Arc<dyn ClusterObserver>,
    ) -> Result<Box<dyn ClusterWatch>, ClusterStoreError>;

    /// Grants a lease that expires `span` (whole seconds) after its last keep-alive.
    ///
    /// # Errors
    /// Fails if no lease was granted.
    fn grant_lease(&self, span: Duration) -> Result<Box<dyn ClusterLease>, ClusterStoreError>;

    /// Returns the time since the last response of the store; `None` if it never responded. State
    /// received by watches is at most that old, plus the time for which a partitioned member keeps
    /// responding: with etcd up to five election timeouts (5 s by default).
    fn time_since_response(&self) -> Option<Duration>;

    /// Runs for election: the candidate that creates `key` first leads while its lease is valid.
    /// Other candidates learn by a watch that the key was removed.
    ///
    /// # Errors
    /// As [`ClusterKvStore::commit`]. After an unknown outcome, a repeated call determines the
    /// result.
    fn campaign(
        &self,
        key: &str,
        candidate: &[u8],
        lease: &dyn ClusterLease,
    ) -> Result<ClusterElectionResult, ClusterStoreError> {
        loop {
            let put = ClusterChange::Put(key.to_owned(), candidate.to_vec(), Some(lease.id()));
            let outcome = self.commit(&[ClusterCondition::KeyAbsent(key.to_owned())], &[put])?;
            if let ClusterCommitResult::Committed(revision) = outcome {
                return Ok(ClusterElectionResult::Elected(revision));
            }
            let view = self.read(key)?;
            let current = view.entries.into_iter().find(|entry| entry.key == key);
            match current {
                Some(entry) if entry.value == candidate => {
                    return Ok(ClusterElectionResult::Elected(entry.created_revision));
                }
                Some(entry) => {
                    return Ok(ClusterElectionResult::OtherLeader(
                        entry.value,
                        entry.created_revision,
                    ));
                }
                // The key was removed between commit and read: try again.
                None => {}
            }
        }
    }
}
