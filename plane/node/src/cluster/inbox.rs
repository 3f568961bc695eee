//! Messages to the cluster thread: from watches, from the worker, and from changes of the desired
//! state.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use suimon_contract::Name;
use suimon_ports::{ClusterEntry, ClusterObserver, ClusterStoreError, ClusterView};

use super::keys::{GRANTS, REPORTS};
use super::messages::TaskResult;
use super::releasing::ReleaseRequest;
use super::reservation_requests::{ReservationRequest, ReservationRequests};

/// Maximum number of existing keys of one watch that are passed on. Further ones are ignored: any
/// holder of etcd's credentials can write keys.
const KEYS_MAX: usize = 8192;
/// Maximum length in bytes of a key below the cluster's prefix. Longer ones, whose names are not
/// valid, are ignored.
const KEY_BYTES_MAX: usize = 256;
/// Maximum length in bytes of a value, except of reports and grants. A longer one is passed on as
/// an empty value, which no reader accepts.
const VALUE_BYTES_MAX: usize = 4096;

/// Queue of messages. Only the last state of each key is kept, so that the size is bounded by the
/// number of keys.
#[derive(Default)]
pub(super) struct Inbox {
    pending: Mutex<PendingMessages>,
    grown: Condvar,
}

#[derive(Default)]
struct PendingMessages {
    /// Number of the session to which keys and results belong.
    session: u64,
    keys: BTreeMap<String, KeyState>,
    /// Results, each with the number of the session that it belongs to; `None`: valid in any
    /// session.
    answers: VecDeque<(Option<u64>, TaskResult)>,
    is_changed: bool,
    leaves: Option<bool>,
    releasing: Option<ReleaseRequest>,
    requests: ReservationRequests,
    stops: bool,
}

/// State of a key at a revision of etcd.
pub(super) struct KeyState {
    pub(super) revision: u64,
    pub(super) entry: Option<ClusterEntry>,
}

/// Messages taken from the inbox.
#[derive(Default)]
pub(super) struct Messages {
    pub(super) keys: BTreeMap<String, KeyState>,
    pub(super) results: Vec<TaskResult>,
    /// True if the desired state may have changed.
    pub(super) is_desired_state_changed: bool,
    /// `true`: give back all reservations and leave; `false`: stay a node.
    pub(super) leave_request: Option<bool>,
    /// Stores that a change stops sharing.
    pub(super) release_request: Option<ReleaseRequest>,
    /// Requests to reserve minimums.
    pub(super) requests: ReservationRequests,
    pub(super) is_stop_requested: bool,
}

impl Inbox {
    /// Blocks until a message is available, or `timeout` has expired.
    pub(super) fn wait(&self, timeout: Duration) -> Messages {
        let pending = self.lock();
        let is_empty = |pending: &mut PendingMessages| {
            pending.keys.is_empty()
                && pending.answers.is_empty()
                && !pending.is_changed
                && pending.leaves.is_none()
                && pending.releasing.is_none()
                && pending.requests.is_empty()
                && !pending.stops
        };
        let wait_result = self.grown.wait_timeout_while(pending, timeout, is_empty);
        let (mut pending, _) = wait_result.unwrap_or_else(PoisonError::into_inner);
        let session = pending.session;
        let is_current = |answer_session: Option<u64>| {
            answer_session.is_none_or(|answer_session| answer_session == session)
        };
        let answers = std::mem::take(&mut pending.answers).into_iter();
        Messages {
            keys: std::mem::take(&mut pending.keys),
            results: answers
                .filter(|(answer_session, _)| is_current(*answer_session))
                .map(|(_, answer)| answer)
                .collect(),
            is_desired_state_changed: std::mem::take(&mut pending.is_changed),
            leave_request: pending.leaves.take(),
            release_request: pending.releasing.take(),
            requests: std::mem::take(&mut pending.requests),
            is_stop_requested: pending.stops,
        }
    }

    /// Begins a session: discards keys and results that belong to earlier ones.
    pub(super) fn begin_session(&self, session: u64) {
        let mut pending = self.lock();
        pending.session = session;
        pending.keys.clear();
        pending.answers.retain(|(answer_session, _)| answer_session.is_none());
    }

    pub(super) fn push_result(&self, session: u64, result: TaskResult) {
        self.change(|pending| pending.answers.push_back((Some(session), result)));
    }

    /// Adds keys that this node has written, as if the watch had reported them.
    pub(super) fn push_written_keys(&self, keys: Vec<(String, KeyState)>) {
        self.change(|pending| {
            for (key, key_state) in keys {
                let known_state = pending.keys.get(&key);
                if known_state.is_none_or(|known_state| known_state.revision < key_state.revision) {
                    pending.keys.insert(key, key_state);
                }
            }
        });
    }

    /// Reports the end of a thread that the driver counts, whatever session it was started in.
    pub(super) fn push_result_any_session(&self, result: TaskResult) {
        self.change(|pending| pending.answers.push_back((None, result)));
    }

    pub(super) fn wake(&self) {
        self.change(|pending| pending.is_changed = true);
    }

    pub(super) fn request_leave(&self) {
        self.change(|pending| pending.leaves = Some(true));
    }

    pub(super) fn cancel_leave(&self) {
        self.change(|pending| pending.leaves = Some(false));
    }

    /// Requests that reservations on stores are given back. Replaces the former request, whose
    /// stores stay shared.
    pub(super) fn request_release(&self, releasing: ReleaseRequest) {
        self.change(|pending| pending.releasing = Some(releasing));
    }

    /// Queues a request for a reservation on a store; `None` withdraws the store's request.
    /// Replaces a request that the driver has not read yet.
    pub(super) fn request_reservation(&self, store: Name, request: Option<ReservationRequest>) {
        self.change(|pending| {
            pending.requests.insert(store, request);
        });
    }

    pub(super) fn request_stop(&self) {
        self.change(|pending| pending.stops = true);
    }

    fn change(&self, change: impl FnOnce(&mut PendingMessages)) {
        change(&mut self.lock());
        self.grown.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, PendingMessages> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Observer of keys with a prefix, for an inbox.
pub(super) struct KeyObserver {
    inbox: Arc<Inbox>,
    session: u64,
    /// Common prefix of the cluster's keys, which is removed.
    root: String,
    /// Existing keys that were passed on, at most [`KEYS_MAX`].
    keys: Mutex<BTreeSet<String>>,
}

impl KeyObserver {
    pub(super) fn new(inbox: &Arc<Inbox>, session: u64, root: &str) -> Arc<Self> {
        let (inbox, root) = (Arc::clone(inbox), root.to_owned());
        Arc::new(Self { inbox, session, root, keys: Mutex::default() })
    }

    fn record(
        &self,
        revision: u64,
        changes: impl IntoIterator<Item = (String, Option<ClusterEntry>)>,
    ) {
        let mut known_keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        self.inbox.change(|pending| {
            for (key, entry) in changes {
                let short = key.strip_prefix(&self.root);
                let Some(short) = short.filter(|short| short.len() <= KEY_BYTES_MAX) else {
                    continue;
                };
                let is_known = known_keys.contains(&key);
                // Removals are always passed on: the driver may have read an ignored key itself.
                match entry {
                    None => {
                        known_keys.remove(&key);
                    }
                    Some(_) if is_known => {}
                    Some(_) if known_keys.len() >= KEYS_MAX => continue,
                    Some(_) => {
                        known_keys.insert(key.clone());
                    }
                }
                if pending.session == self.session {
                    let entry = entry.map(|entry| without_long_value(short, entry));
                    pending.keys.insert(short.to_owned(), KeyState { revision, entry });
                }
            }
        });
    }
}

/// Returns the entry of a key, with an empty value if it is longer than any that a daemon writes.
fn without_long_value(short_key: &str, entry: ClusterEntry) -> ClusterEntry {
    let is_long = entry.value.len() > VALUE_BYTES_MAX;
    if !is_long || short_key.starts_with(REPORTS) || short_key.starts_with(GRANTS) {
        return entry;
    }
    ClusterEntry { value: Vec::new(), ..entry }
}

impl ClusterObserver for KeyObserver {
    fn handle_snapshot(&self, view: ClusterView) {
        let removed: Vec<String> = {
            let known_keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            let current: BTreeSet<&str> =
                view.entries.iter().map(|entry| entry.key.as_str()).collect();
            let is_removed = |key: &&String| !current.contains(key.as_str());
            known_keys.iter().filter(is_removed).cloned().collect()
        };
        let removed = removed.into_iter().map(|key| (key, None));
        let current_entries =
            view.entries.into_iter().map(|entry| (entry.key.clone(), Some(entry)));
        self.record(view.revision, removed.chain(current_entries));
    }

    fn handle_changes(&self, revision: u64, changes: Vec<(String, Option<ClusterEntry>)>) {
        self.record(revision, changes);
    }

    fn handle_interruption(&self, error: &ClusterStoreError) {
        tracing::debug!(%error, "messages of the cluster are dropped for now");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the last state of each key is kept, because a node may write its keys at any rate.
    #[test]
    fn of_each_key_only_the_last_state_is_kept_until_the_driver_reads_it() {
        let inbox = Arc::new(Inbox::default());
        inbox.begin_session(1);
        let observer = KeyObserver::new(&inbox, 1, "/suimon/lab/");
        for revision in 0..10_000 {
            let key = format!("/suimon/lab/reports/san/{}", revision % 3);
            let (value, created, modified) = (vec![0; 100], 1, revision);
            let entry = ClusterEntry {
                key: key.clone(),
                value,
                created_revision: created,
                modified_revision: modified,
            };
            let is_removed = revision % 7 == 0;
            observer.handle_changes(revision, vec![(key, (!is_removed).then_some(entry))]);
        }
        assert!(observer.keys.lock().unwrap().len() <= 3);
        let keys = inbox.wait(Duration::ZERO).keys;
        assert_eq!(keys.len(), 3);
        assert_eq!(keys["reports/san/0"].revision, 9999);
        // Keys of a session that has ended are dropped.
        inbox.begin_session(2);
        observer.handle_changes(10_000, vec![("/suimon/lab/reports/san/9".to_owned(), None)]);
        assert!(inbox.wait(Duration::ZERO).keys.is_empty());
    }

    /// Anyone with etcd's credentials can write keys.
    #[test]
    fn keys_of_a_watch_are_bounded_and_a_removed_one_makes_room() {
        let inbox = Arc::new(Inbox::default());
        inbox.begin_session(1);
        let observer = KeyObserver::new(&inbox, 1, "/suimon/lab/");
        let put = |name: &str, bytes: usize| {
            let key = format!("/suimon/lab/members/{name}");
            let (value, created, modified) = (vec![b'x'; bytes], 1, 1);
            let entry = ClusterEntry {
                key: key.clone(),
                value,
                created_revision: created,
                modified_revision: modified,
            };
            (key, Some(entry))
        };
        observer.handle_changes(1, vec![put(&"n".repeat(300), 10)]);
        assert!(inbox.wait(Duration::ZERO).keys.is_empty(), "no name is that long");
        for number in 0..2 * KEYS_MAX {
            observer.handle_changes(1, vec![put(&format!("n{number}"), 10)]);
        }
        assert_eq!(observer.keys.lock().unwrap().len(), KEYS_MAX);
        assert_eq!(inbox.wait(Duration::ZERO).keys.len(), KEYS_MAX);
        observer.handle_changes(2, vec![put("n0", 2 * VALUE_BYTES_MAX)]);
        let keys = inbox.wait(Duration::ZERO).keys;
        assert!(keys["members/n0"].entry.as_ref().unwrap().value.is_empty());
        let removal = ("/suimon/lab/members/n1".to_owned(), None);
        observer.handle_changes(3, vec![removal, put("later", 10)]);
        let keys = inbox.wait(Duration::ZERO).keys;
        assert!(keys["members/n1"].entry.is_none() && keys.contains_key("members/later"));
        // The driver may have read an ignored key itself.
        observer.handle_changes(4, vec![(format!("/suimon/lab/members/n{KEYS_MAX}"), None)]);
        assert_eq!(inbox.wait(Duration::ZERO).keys.len(), 1);
    }

    /// Otherwise the driver would wait for the end of a thread for ever.
    #[test]
    fn the_end_of_a_thread_is_received_after_a_change_of_the_session() {
        let inbox = Inbox::default();
        let store: Name = "san".parse().unwrap();
        inbox.begin_session(1);
        inbox.push_result(1, TaskResult::NodeRemoved);
        inbox.push_result_any_session(TaskResult::HeartbeatWritten {
            store: store.clone(),
            heartbeats: Ok(Vec::new()),
        });
        inbox.begin_session(2);
        inbox.push_result(1, TaskResult::NodeRemoved);
        inbox.push_result_any_session(TaskResult::IdentityChecked {
            store,
            session: 1,
            mismatch: Ok(None),
        });
        let answers = inbox.wait(Duration::ZERO).results;
        assert_eq!(answers.len(), 2);
        assert!(answers.iter().all(|result| !matches!(result, TaskResult::NodeRemoved)));
    }
}
