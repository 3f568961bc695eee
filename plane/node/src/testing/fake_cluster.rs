//! Cluster store in memory with injected faults.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ClusterConfig, ErrorCode};
use suimon_ports::testing::MemoryStore as MemoryFiles;
use suimon_ports::{
    ClusterChange, ClusterCommitResult, ClusterCondition, ClusterEntry, ClusterKvStore,
    ClusterLease, ClusterLeaseId, ClusterObserver, ClusterStoreError,
    ClusterStoreErrorKind as Kind, ClusterView, ClusterWatch,
};

use crate::ClusterStoreConnector;

/// Faults of one client's connection to the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// The store does not respond and reports no changes.
    pub(crate) is_unreachable: bool,
    /// Transactions are committed, but their responses are lost.
    pub(crate) loses_answers: bool,
}

/// Client of the store; clones are the same client.
#[derive(Clone, Default)]
pub(crate) struct FakeCluster {
    world: Arc<Mutex<World>>,
    faults: Arc<Mutex<Faults>>,
    last_answer: Arc<Mutex<Option<Instant>>>,
    /// Number of failed lease requests.
    without_lease: Arc<AtomicUsize>,
}

#[derive(Default)]
struct World {
    revision: u64,
    entries: BTreeMap<String, (ClusterEntry, Option<i64>)>,
    leases: i64,
    watches: BTreeMap<u64, Watched>,
    next_watch: u64,
    files: MemoryFiles,
    /// Key whose next removal is followed by a write of the former value, and the key that is
    /// written; see [`FakeCluster::write_after_removal`].
    late_write: Option<(String, String)>,
    /// Prefix, and the action that follows its next read; see [`FakeCluster::after_read`].
    after_read: Option<(String, Box<dyn FnOnce() + Send>)>,
    /// Key whose removals fail; see [`FakeCluster::refuse_removal`].
    refused_removal: Option<String>,
}

/// Watch of a client.
struct Watched {
    prefix: String,
    observer: Arc<dyn ClusterObserver>,
    faults: Arc<Mutex<Faults>>,
    /// True if a change was not reported because the store was unreachable.
    is_behind: bool,
}

impl FakeCluster {
    /// Returns another client of the same store.
    pub(crate) fn new_client(&self) -> Self {
        Self { world: Arc::clone(&self.world), ..Self::default() }
    }

    /// Sets the faults. Missed changes are reported once the store is reachable again.
    pub(crate) fn set(&self, faults: Faults) {
        *lock(&self.faults) = faults;
        if !faults.is_unreachable {
            lock(&self.world).catch_up();
        }
    }

    /// Ends all leases as if they had expired.
    pub(crate) fn end_leases(&self) {
        let mut world = lock(&self.world);
        let leased = world.entries.iter().filter(|(_, (_, lease))| lease.is_some());
        let changes: Vec<ClusterChange> =
            leased.map(|(key, _)| ClusterChange::Remove(key.clone())).collect();
        world.make(&changes);
    }

    /// Makes the next removal of `removed` be followed by a write of the former value of `written`,
    /// before watches report the removal.
    pub(crate) fn write_after_removal(&self, removed: String, written: String) {
        lock(&self.world).late_write = Some((removed, written));
    }

    /// Calls `action` when this prefix is read the next time, before the reader gets the result.
    pub(crate) fn after_read(&self, prefix: &str, action: impl FnOnce() + Send + 'static) {
        lock(&self.world).after_read = Some((prefix.to_owned(), Box::new(action)));
    }

    /// Makes transactions that remove `key` fail; `None`: no transaction.
    pub(crate) fn refuse_removal(&self, key: Option<&str>) {
        lock(&self.world).refused_removal = key.map(str::to_owned);
    }

    /// Returns the keys with this prefix.
    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
        let world = lock(&self.world);
        world.entries.keys().filter(|key| key.starts_with(prefix)).cloned().collect()
    }

    /// Returns the value of a key as text; `None` if the key does not exist.
    pub(crate) fn value(&self, key: &str) -> Option<String> {
        let (entry, _) = lock(&self.world).entries.get(key)?.clone();
        String::from_utf8(entry.value).ok()
    }

    /// Returns the number of watches of this prefix, of all clients.
    pub(crate) fn watches(&self, prefix: &str) -> usize {
        let world = lock(&self.world);
        world.watches.values().filter(|watched| watched.prefix == prefix).count()
    }

    /// Returns the number of failed lease requests.
    pub(crate) fn times_without_lease(&self) -> usize {
        self.without_lease.load(Relaxed)
    }

    /// Returns a directory that all nodes share.
    pub(crate) fn files(&self) -> MemoryFiles {
        lock(&self.world).files.clone()
    }

    fn check_reachable(&self) -> Result<(), ClusterStoreError> {
        if lock(&self.faults).is_unreachable {
            std::thread::sleep(Duration::from_millis(20));
            let detail = "nobody answers".to_owned();
            return Err(ClusterStoreError { kind: Kind::Unreachable, detail });
        }
        *lock(&self.last_answer) = Some(Instant::now());
        Ok(())
    }
}

impl ClusterStoreConnector for FakeCluster {
    fn connect(&self, _config: &ClusterConfig) -> Result<Arc<dyn ClusterKvStore>, ApiError> {
        self.check_reachable()
            .map_err(|error| ApiError::new(ErrorCode::HostError, error.to_string()))?;
        Ok(Arc::new(self.clone()))
    }
}

impl World {
    fn holds(&self, condition: &ClusterCondition) -> bool {
        match condition {
            ClusterCondition::KeyAbsent(key) => !self.entries.contains_key(key),
            ClusterCondition::KeyCreatedAt(key, created) => {
                self.entries.get(key).is_some_and(|(entry, _)| entry.created_revision == *created)
            }
            ClusterCondition::KeyUnmodifiedSince(key, modified) => {
                self.entries.get(key).is_some_and(|(entry, _)| entry.modified_revision == *modified)
            }
        }
    }

    fn refuses(&self, changes: &[ClusterChange]) -> bool {
        changes.iter().any(|change| match change {
            ClusterChange::Remove(key) => self.refused_removal.as_ref() == Some(key),
            ClusterChange::Put(..) => false,
        })
    }

    fn make(&mut self, changes: &[ClusterChange]) -> u64 {
        self.revision += 1;
        let revision = self.revision;
        let mut notifications = Vec::new();
        let is_removed = |(removed, _): &mut (String, String)| {
            changes
                .iter()
                .any(|change| matches!(change, ClusterChange::Remove(key) if key == removed))
        };
        let late_removal = self.late_write.take_if(is_removed);
        let written = late_removal.as_ref().and_then(|(_, key)| self.entries.get(key).cloned());
        for change in changes {
            match change {
                ClusterChange::Put(key, value, lease) => {
                    let created =
                        self.entries.get(key).map_or(revision, |(entry, _)| entry.created_revision);
                    let (key, value) = (key.clone(), value.clone());
                    let entry = ClusterEntry {
                        key: key.clone(),
                        value,
                        created_revision: created,
                        modified_revision: revision,
                    };
                    self.entries
                        .insert(key.clone(), (entry.clone(), lease.map(|lease_id| lease_id.0)));
                    notifications.push((key, Some(entry)));
                }
                ClusterChange::Remove(key) => {
                    if self.entries.remove(key).is_some() {
                        notifications.push((key.clone(), None));
                    }
                }
            }
        }
        if let (Some((removed, key)), Some(entry)) = (late_removal, written) {
            notifications.retain(|(removed_key, _)| *removed_key != removed);
            self.entries.insert(key, entry);
        }
        for Watched { prefix, observer, faults, is_behind } in self.watches.values_mut() {
            if lock(faults).is_unreachable {
                *is_behind = true;
                continue;
            }
            let changed = notifications.iter().filter(|(key, _)| key.starts_with(prefix.as_str()));
            let changed: Vec<_> = changed.cloned().collect();
            if !changed.is_empty() {
                observer.handle_changes(revision, changed);
            }
        }
        revision
    }

    fn view(&self, prefix: &str) -> ClusterView {
        let entries = self.entries.iter().filter(|(key, _)| key.starts_with(prefix));
        let entries = entries.map(|(_, (entry, _))| entry.clone()).collect();
        ClusterView { revision: self.revision, entries }
    }

    fn catch_up(&mut self) {
        let mut watches = std::mem::take(&mut self.watches);
        for Watched { prefix, observer, faults, is_behind } in watches.values_mut() {
            if *is_behind && !lock(faults).is_unreachable {
                *is_behind = false;
                observer.handle_snapshot(self.view(prefix));
            }
        }
        self.watches = watches;
    }
}

impl ClusterKvStore for FakeCluster {
    fn read(&self, prefix: &str) -> Result<ClusterView, ClusterStoreError> {
        self.check_reachable()?;
        let mut world = lock(&self.world);
        let view = world.view(prefix);
        let action = world.after_read.take_if(|(read_prefix, _)| read_prefix.as_str() == prefix);
        drop(world);
        if let Some((_, action)) = action {
            action();
        }
        Ok(view)
    }

    fn commit(
        &self,
        conditions: &[ClusterCondition],
        changes: &[ClusterChange],
    ) -> Result<ClusterCommitResult, ClusterStoreError> {
        self.check_reachable()?;
        if changes.len().max(conditions.len()) > self.changes_max() {
            let detail = "too many operations in a transaction".to_owned();
            return Err(ClusterStoreError { kind: Kind::Refused, detail });
        }
        let mut world = lock(&self.world);
        if world.refuses(changes) {
            let detail = "nobody answers".to_owned();
            return Err(ClusterStoreError { kind: Kind::Unreachable, detail });
        }
        let holds = conditions.iter().all(|condition| world.holds(condition));
        let revision = holds.then(|| world.make(changes));
        drop(world);
        if lock(&self.faults).loses_answers {
            let detail = "the answer was lost".to_owned();
            return Err(ClusterStoreError { kind: Kind::OutcomeUnknown, detail });
        }
        Ok(revision.map_or(ClusterCommitResult::ConditionFailed, ClusterCommitResult::Committed))
    }

    fn changes_max(&self) -> usize {
        4
    }

    fn watch(
        &self,
        prefix: &str,
        observer: Arc<dyn ClusterObserver>,
    ) -> Result<Box<dyn ClusterWatch>, ClusterStoreError> {
        self.check_reachable()?;
        let mut world = lock(&self.world);
        observer.handle_snapshot(world.view(prefix));
        world.next_watch += 1;
        let number = world.next_watch;
        let (prefix, faults) = (prefix.to_owned(), Arc::clone(&self.faults));
        let watch = Watched { prefix, observer, faults, is_behind: false };
        world.watches.insert(number, watch);
        Ok(Box::new(Watch { world: Arc::clone(&self.world), number }))
    }

    fn grant_lease(&self, span: Duration) -> Result<Box<dyn ClusterLease>, ClusterStoreError> {
        self.check_reachable().inspect_err(|_| {
            self.without_lease.fetch_add(1, Relaxed);
        })?;
        let mut world = lock(&self.world);
        world.leases += 1;
        let (id, world) = (world.leases, Arc::clone(&self.world));
        Ok(Box::new(Lease { world, id, span, faults: Arc::clone(&self.faults) }))
    }

    fn time_since_response(&self) -> Option<Duration> {
        if !lock(&self.faults).is_unreachable {
            return Some(Duration::ZERO);
        }
        lock(&self.last_answer).map(|answered_at| answered_at.elapsed())
    }
}

struct Watch {
    world: Arc<Mutex<World>>,
    number: u64,
}

impl ClusterWatch for Watch {}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&self.world).watches.remove(&self.number);
    }
}

struct Lease {
    world: Arc<Mutex<World>>,
    id: i64,
    span: Duration,
    faults: Arc<Mutex<Faults>>,
}

impl ClusterLease for Lease {
    fn id(&self) -> ClusterLeaseId {
        ClusterLeaseId(self.id)
    }

    fn remaining(&self) -> Duration {
        if lock(&self.faults).is_unreachable { Duration::ZERO } else { self.span }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut world = lock(&self.world);
        let is_its = |lease: &Option<i64>| *lease == Some(self.id);
        let entries = world.entries.iter().filter(|(_, (_, lease))| is_its(lease));
        let changes: Vec<ClusterChange> =
            entries.map(|(key, _)| ClusterChange::Remove(key.clone())).collect();
        if !changes.is_empty() {
            world.make(&changes);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
