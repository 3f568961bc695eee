//! What the nodes of a cluster know together.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

/// Why the cluster's store did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the cluster's store: {detail}")]
pub struct ClusterStoreError {
    /// What kind of failure.
    pub kind: ClusterStoreErrorKind,
    /// What failed, with the peer, and what to do next.
    pub detail: String,
}

/// Kinds of failures of a cluster's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterStoreErrorKind {
    /// No member that knows a leader could be reached. Nothing was done.
    Unreachable,
    /// It was asked and did not answer: nobody knows whether it was done.
    OutcomeUnknown,
    /// The user, the password or the certificate is not accepted.
    NotAllowed,
    /// The store takes no more, or not so much at a time.
    Full,
    /// The lease has ended.
    LeaseEnded,
    /// Something is wrong with what was asked, or with the store.
    Refused,
}

/// A key and what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterEntry {
    /// The key.
    pub key: String,
    /// What is there.
    pub value: Vec<u8>,
    /// The store's revision at which the key came into being.
    pub created: u64,
    /// That at which it was last written.
    pub modified: u64,
}

/// All keys with a prefix, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterView {
    /// The store's revision. Later ones are higher.
    pub revision: u64,
    /// Ascending by key.
    pub entries: Vec<ClusterEntry>,
}

/// What has to be so, for a change to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterCondition {
    /// There is no such key.
    Absent(String),
    /// The key came into being at this revision and is there: who was elected by it still is.
    Created(String, u64),
    /// Nobody has written the key since this revision.
    Unmodified(String, u64),
}

/// A change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterChange {
    /// It is to have this value; until a lease ends, if one is given.
    Put(String, Vec<u8>, Option<ClusterLeaseId>),
    /// It is to be no more.
    Remove(String),
}

/// A lease of the cluster's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterLeaseId(pub i64);

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterCommit {
    /// All changes were made, at this revision.
    Made(u64),
    /// A condition was not so. Nothing was changed.
    ConditionFailed,
}

/// Who was elected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterElection {
    /// Who asked, for the term of this number, which is higher than all before. Writes are fenced
    /// by [`ClusterCondition::Created`] with it.
    Elected(u64),
    /// Somebody else is: who, and for which term.
    Other(Vec<u8>, u64),
}

/// Hears of changes. It is called on a thread of the store's and must not wait.
pub trait ClusterObserver: Send + Sync {
    /// All there is: what was heard before counts no more.
    fn snapshot(&self, view: ClusterView);

    /// What has changed since, in order, all of one revision at once: the key, and what is there now.
    fn changed(&self, revision: u64, changes: Vec<(String, Option<ClusterEntry>)>);

    /// Nothing is heard for now. It goes on by itself, from where it was if it can.
    fn interrupted(&self, error: &ClusterStoreError);
}

/// Hears no more when it is dropped.
pub trait ClusterWatch: Send + Sync {}

/// A lease that is kept alive until it is dropped, which ends it.
pub trait ClusterLease: Send + Sync {
    /// Which.
    fn id(&self) -> ClusterLeaseId;

    /// For how long it holds at least if nobody keeps it alive any more, by this host's clock: counted
    /// from when it was last asked for with success. Zero: it has ended, or may have.
    fn holds_for(&self) -> Duration;
}

/// A store of keys and values that all nodes of a cluster see alike. What was read is what was last
/// written, whoever wrote it. All calls wait, for as long as the store was told to at most.
pub trait ClusterStore: Send + Sync {
    /// All keys with a prefix.
    ///
    /// # Errors
    /// Nothing was read.
    fn read(&self, prefix: &str) -> Result<ClusterView, ClusterStoreError>;

    /// Makes all changes if all conditions are so, and none otherwise. At most
    /// [`ClusterStore::changes_max`] conditions and changes together.
    ///
    /// # Errors
    /// Nothing was changed, unless the kind is [`ClusterStoreErrorKind::OutcomeUnknown`].
    fn commit(
        &self,
        conditions: &[ClusterCondition],
        changes: &[ClusterChange],
    ) -> Result<ClusterCommit, ClusterStoreError>;

    /// Conditions and changes that a transaction may have.
    fn changes_max(&self) -> usize;

    /// Tells an observer all keys with a prefix, and what becomes of them.
    ///
    /// # Errors
    /// It could not be begun.
    fn watch(
        &self,
        prefix: &str,
        observer: Arc<dyn ClusterObserver>,
    ) -> Result<Box<dyn ClusterWatch>, ClusterStoreError>;

    /// A lease that ends so long after it was last kept alive, in whole seconds.
    ///
    /// # Errors
    /// There is none.
    fn lease(&self, span: Duration) -> Result<Box<dyn ClusterLease>, ClusterStoreError>;

    /// How long ago the store last answered; `None`: never. What watches told is as old, and a
    /// little older where a member answered that had lost the others and did not know it yet: with
    /// etcd that may last for five of its election timeouts (5 s by default).
    fn age(&self) -> Option<Duration>;

    /// Tries to be elected: by coming first at a key, for as long as a lease lasts. Who is not hears
    /// by a watch that the key is gone.
    ///
    /// # Errors
    /// As [`ClusterStore::commit`]. If the outcome is not known the next try tells it.
    fn elect(
        &self,
        key: &str,
        who: &[u8],
        lease: &dyn ClusterLease,
    ) -> Result<ClusterElection, ClusterStoreError> {
        loop {
            let put = ClusterChange::Put(key.to_owned(), who.to_vec(), Some(lease.id()));
            let made = self.commit(&[ClusterCondition::Absent(key.to_owned())], &[put])?;
            if let ClusterCommit::Made(revision) = made {
                return Ok(ClusterElection::Elected(revision));
            }
            let view = self.read(key)?;
            let found = view.entries.into_iter().find(|entry| entry.key == key);
            match found {
                Some(entry) if entry.value == who => {
                    return Ok(ClusterElection::Elected(entry.created));
                }
                Some(entry) => return Ok(ClusterElection::Other(entry.value, entry.created)),
                // It went between the two.
                None => {}
            }
        }
    }
}
