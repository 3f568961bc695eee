//! Implementation of the cluster store with etcd.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Compare, CompareOp, GetOptions, PutOptions, Txn, TxnOp};
use suimon_lookups::{LOOKUPS_MAX, Lookups};
use suimon_ports::{
    ClusterChange, ClusterCommitResult, ClusterCondition, ClusterKvStore, ClusterLease,
    ClusterObserver, ClusterStoreError, ClusterStoreErrorKind as Kind, ClusterView, ClusterWatch,
};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::lease::Lease;
use crate::members::Members;
use crate::spec::EtcdSpec;
use crate::view::{decode_revision, read_view};
use crate::watch;

/// Maximum number of changes of a transaction: the default of etcd's `--max-txn-ops`, which limits
/// conditions and changes separately.
const CHANGES_MAX: usize = 128;

/// Connection to etcd; see the crate documentation.
pub struct EtcdStore {
    members: Arc<Members>,
    handle: Handle,
    /// Set until the store is dropped.
    runtime: Option<Runtime>,
}

impl EtcdStore {
    /// Starts the store's thread, and blocks until a member has replied.
    ///
    /// # Errors
    /// There is no endpoint, the thread cannot be started, no member replies, or the credentials
    /// are rejected.
    pub fn connect(spec: EtcdSpec) -> Result<Self, ClusterStoreError> {
        if spec.endpoints.is_empty() {
            let detail =
                "there is no endpoint; set the URL of at least one member of etcd".to_owned();
            return Err(ClusterStoreError { kind: Kind::Refused, detail });
        }
        let prefix = spec.prefix.clone();
        let store =
            Self::new(spec, Lookups::process_wide()).map_err(|error| ClusterStoreError {
                kind: Kind::Refused,
                detail: format!(
                    "cannot start a thread for etcd: {error}; check the host's limit of threads"
                ),
            })?;
        store.check(&prefix)?;
        Ok(store)
    }

    /// Sends one read request.
    ///
    /// # Errors
    /// No member replies, or the user may not read `prefix`.
    fn check(&self, prefix: &str) -> Result<(), ClusterStoreError> {
        let question = self.members.request(false, |mut client| {
            let options = GetOptions::new().with_prefix().with_count_only();
            async move { client.get(prefix, Some(options)).await }
        });
        self.handle.block_on(question).map(drop)
    }

    /// Starts the store's thread without connecting.
    fn new(spec: EtcdSpec, lookups: Lookups) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            // Lookups of names are the only blocking calls.
            .max_blocking_threads(LOOKUPS_MAX)
            .thread_name("suimon-etcd")
            .enable_all()
            .build()?;
        let (members, handle) = (Arc::new(Members::new(spec, lookups)), runtime.handle().clone());
        Ok(Self { members, handle, runtime: Some(runtime) })
    }

    fn handle(&self) -> &Handle {
        &self.handle
    }
}

/// Ends the store's thread in the background, without waiting for its tasks.
impl Drop for EtcdStore {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn condition(condition: &ClusterCondition) -> Compare {
    let signed = |revision: u64| i64::try_from(revision).unwrap_or(i64::MAX);
    match condition {
        ClusterCondition::KeyAbsent(key) => Compare::version(key.as_str(), CompareOp::Equal, 0),
        ClusterCondition::KeyCreatedAt(key, revision) => {
            Compare::create_revision(key.as_str(), CompareOp::Equal, signed(*revision))
        }
        ClusterCondition::KeyUnmodifiedSince(key, revision) => {
            Compare::mod_revision(key.as_str(), CompareOp::Equal, signed(*revision))
        }
    }
}

fn change(change: &ClusterChange) -> TxnOp {
    match change {
        ClusterChange::Put(key, value, lease) => {
            let options = lease.map(|lease| PutOptions::new().with_lease(lease.0));
            TxnOp::put(key.as_str(), value.as_slice(), options)
        }
        ClusterChange::Remove(key) => TxnOp::delete(key.as_str(), None),
    }
}

impl ClusterKvStore for EtcdStore {
    fn read(&self, prefix: &str) -> Result<ClusterView, ClusterStoreError> {
        self.handle.block_on(read_view(&self.members, prefix))
    }

    fn commit(
        &self,
        conditions: &[ClusterCondition],
        changes: &[ClusterChange],
    ) -> Result<ClusterCommitResult, ClusterStoreError> {
        let conditions: Vec<Compare> = conditions.iter().map(condition).collect();
        let changes: Vec<TxnOp> = changes.iter().map(change).collect();
        let transaction = Txn::new().when(conditions).and_then(changes);
        let answer = self.handle.block_on(self.members.request(true, |mut client| {
            let transaction = transaction.clone();
            async move { client.txn(transaction).await }
        }))?;
        if !answer.succeeded() {
            return Ok(ClusterCommitResult::ConditionFailed);
        }
        let number = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
        Ok(ClusterCommitResult::Committed(decode_revision(number)))
    }

    fn changes_max(&self) -> usize {
        CHANGES_MAX
    }

    fn watch(
        &self,
        prefix: &str,
        observer: Arc<dyn ClusterObserver>,
    ) -> Result<Box<dyn ClusterWatch>, ClusterStoreError> {
        let members = Arc::clone(&self.members);
        let task = watch::watch(members, prefix.to_owned(), observer);
        Ok(Box::new(watch::Watch::new(self.handle.spawn(task))))
    }

    fn grant_lease(&self, span: Duration) -> Result<Box<dyn ClusterLease>, ClusterStoreError> {
        let members = Arc::clone(&self.members);
        let lease = Lease::acquire(self.handle(), members, span)?;
        Ok(Box::new(lease))
    }

    fn time_since_response(&self) -> Option<Duration> {
        self.members.time_since_reply()
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
