//! Content of etcd: keys with revisions, leases, and requests processed one at a time.
//!
//! It implements the interface required by `ports/src/cluster_store.rs`, but does not encode keys
//! and values as text, since a run has millions of them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use suimon_cluster_qos::{LoadReport, NodeGrant};
use suimon_quantity::Time;

/// Key in etcd. Stores and nodes have the numbers of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Key that names the leader of a store.
    Leader(u32),
    /// Last report about a store (first number) by a node (second number).
    Report(u32, u32),
    /// Last grant for a store (first number) to a node (second number).
    Grant(u32, u32),
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Leader: number of the node, and number of the start of its daemon.
    Leader(u32, u64),
    Report(Rc<LoadReport>),
    Grant(Rc<NodeGrant>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    /// Revision of the key space at which the key was created.
    pub(crate) create_revision: u64,
    lease: Option<u32>,
}

/// Condition on which a transaction is executed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Condition {
    Absent(Key),
    CreatedAtRevision(Key, u64),
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Put(Key, Value, Option<u32>),
    Remove(Key),
}

/// Set of keys to read.
#[derive(Clone, Debug)]
pub(crate) enum Keys {
    /// The listed keys.
    Listed(Vec<Key>),
    /// Reports and grants of all nodes for a store.
    Store(u32),
}

#[derive(Clone, Debug)]
pub(crate) enum Request {
    Commit(Option<Condition>, Vec<Change>),
    Read(Keys),
    /// Creation of a lease with a duration in ns.
    GrantLease(u64),
    KeepAlive(u32),
}

#[derive(Clone, Debug)]
pub(crate) enum Response {
    /// The transaction was executed, at this revision.
    Committed(u64),
    ConditionFailed,
    Entries(Vec<(Key, Entry)>),
    LeaseGranted(u32),
    /// Result of a keep-alive: true if the lease exists.
    IsAlive(bool),
    /// The request was rejected: the member has failed or reaches no leader.
    Rejected,
}

/// Changed key and its new entry; `None` if the key was removed.
pub(crate) type KeyChange = (Key, Option<Entry>);

#[derive(Clone, Debug)]
struct Lease {
    span_ns: u64,
    ends: Time,
    keys: BTreeSet<Key>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Keyspace {
    revision: u64,
    entries: BTreeMap<Key, Entry>,
    leases: BTreeMap<u32, Lease>,
    last_lease: u32,
}

impl Keyspace {
    /// Processes a request and appends the resulting changes to `changed`.
    pub(crate) fn execute(
        &mut self,
        now: Time,
        request: Request,
        changed: &mut Vec<KeyChange>,
    ) -> Response {
        match request {
            Request::Commit(condition, changes) => {
                if !condition.is_none_or(|condition| self.is_met(condition)) {
                    return Response::ConditionFailed;
                }
                self.revision += 1;
                for change in changes {
                    self.change(change, changed);
                }
                Response::Committed(self.revision)
            }
            Request::Read(keys) => Response::Entries(self.read(&keys)),
            Request::GrantLease(span_ns) => {
                self.last_lease += 1;
                let ends = Time::from_ns(now.as_ns() + span_ns);
                self.leases.insert(self.last_lease, Lease { span_ns, ends, keys: BTreeSet::new() });
                Response::LeaseGranted(self.last_lease)
            }
            Request::KeepAlive(lease) => {
                let Some(lease) = self.leases.get_mut(&lease) else {
                    return Response::IsAlive(false);
                };
                lease.ends = Time::from_ns(now.as_ns() + lease.span_ns);
                Response::IsAlive(true)
            }
        }
    }

    /// Returns the time at which a lease expires unless it is kept alive; `None` if it does not
    /// exist.
    pub(crate) fn lease_expiry(&self, lease: u32) -> Option<Time> {
        self.leases.get(&lease).map(|lease| lease.ends)
    }

    /// Revokes a lease and removes its keys. Appends the removals to `changed`.
    pub(crate) fn revoke_lease(&mut self, lease: u32, changed: &mut Vec<KeyChange>) {
        let Some(lease) = self.leases.remove(&lease) else { return };
        self.revision += 1;
        for key in lease.keys {
            self.change(Change::Remove(key), changed);
        }
    }

    /// Restarts the duration of all leases, because a new leader of etcd has no record of the last
    /// keep-alives. Returns the numbers of the leases.
    pub(crate) fn extend_leases(&mut self, now: Time) -> Vec<u32> {
        for lease in self.leases.values_mut() {
            lease.ends = Time::from_ns(now.as_ns() + lease.span_ns);
        }
        self.leases.keys().copied().collect()
    }

    pub(crate) fn get(&self, key: Key) -> Option<&Entry> {
        self.entries.get(&key)
    }

    fn is_met(&self, condition: Condition) -> bool {
        match condition {
            Condition::Absent(key) => !self.entries.contains_key(&key),
            Condition::CreatedAtRevision(key, created) => {
                self.entries.get(&key).is_some_and(|entry| entry.create_revision == created)
            }
        }
    }

    fn change(&mut self, change: Change, changed: &mut Vec<KeyChange>) {
        let (key, entry) = match change {
            Change::Put(key, value, lease) => {
                let created =
                    self.entries.get(&key).map_or(self.revision, |entry| entry.create_revision);
                (key, Some(Entry { value, create_revision: created, lease }))
            }
            Change::Remove(key) => (key, None),
        };
        let lease = entry.as_ref().and_then(|entry| entry.lease);
        let before = match &entry {
            Some(entry) => self.entries.insert(key, entry.clone()),
            None => self.entries.remove(&key),
        };
        let was_there = before.is_some();
        if let Some(old) = before.and_then(|before| before.lease) {
            self.leases.get_mut(&old).map(|lease| lease.keys.remove(&key));
        }
        if let Some(new) = lease {
            self.leases.get_mut(&new).map(|lease| lease.keys.insert(key));
        }
        if was_there || entry.is_some() {
            changed.push((key, entry));
        }
    }

    fn read(&self, keys: &Keys) -> Vec<(Key, Entry)> {
        match keys {
            Keys::Listed(keys) => {
                keys.iter().filter_map(|key| Some((*key, self.entries.get(key)?.clone()))).collect()
            }
            Keys::Store(store) => {
                let reports = Key::Report(*store, 0)..=Key::Report(*store, u32::MAX);
                let grants = Key::Grant(*store, 0)..=Key::Grant(*store, u32::MAX);
                let entries = self.entries.range(reports).chain(self.entries.range(grants));
                entries.map(|(key, entry)| (*key, entry.clone())).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_elected_node_writes_until_its_lease_ends() {
        let mut keys = Keyspace::default();
        let mut changed = Vec::new();
        let mut execute = |keys: &mut Keyspace, s: u64, request| {
            keys.execute(Time::from_ns(s * 1_000_000_000), request, &mut changed)
        };
        let lease = |answer| match answer {
            Response::LeaseGranted(lease) => lease,
            other => panic!("{other:?}"),
        };
        let first_lease = lease(execute(&mut keys, 0, Request::GrantLease(5_000_000_000)));
        let second_lease = lease(execute(&mut keys, 0, Request::GrantLease(5_000_000_000)));
        let elect = |node, lease| {
            let put_leader = Change::Put(Key::Leader(7), Value::Leader(node, 1), Some(lease));
            Request::Commit(Some(Condition::Absent(Key::Leader(7))), vec![put_leader])
        };
        let Response::Committed(term) = execute(&mut keys, 0, elect(1, first_lease)) else {
            panic!()
        };
        assert!(matches!(execute(&mut keys, 0, elect(2, second_lease)), Response::ConditionFailed));
        let fenced = |term| {
            let put_grant = Change::Put(Key::Grant(7, 1), Value::Leader(0, 1), None);
            Request::Commit(
                Some(Condition::CreatedAtRevision(Key::Leader(7), term)),
                vec![put_grant],
            )
        };
        assert!(matches!(execute(&mut keys, 1, fenced(term)), Response::Committed(_)));
        assert!(matches!(
            execute(&mut keys, 4, Request::KeepAlive(first_lease)),
            Response::IsAlive(true)
        ));
        assert_eq!(keys.lease_expiry(first_lease), Some(Time::from_ns(9_000_000_000)));
        assert_eq!(keys.lease_expiry(second_lease), Some(Time::from_ns(5_000_000_000)));
        let mut removed = Vec::new();
        keys.revoke_lease(first_lease, &mut removed);
        assert!(matches!(removed[..], [(Key::Leader(7), None)]), "{removed:?}");
        let mut execute = |request| keys.execute(Time::ZERO, request, &mut changed);
        assert!(matches!(execute(Request::KeepAlive(first_lease)), Response::IsAlive(false)));
        assert!(matches!(execute(fenced(term)), Response::ConditionFailed));
        let Response::Committed(next) = execute(elect(2, second_lease)) else { panic!() };
        assert!(next > term, "a later term is higher");
        assert!(matches!(execute(fenced(term)), Response::ConditionFailed));
        let Response::Entries(entries) = execute(Request::Read(Keys::Store(7))) else { panic!() };
        assert!(matches!(entries[..], [(Key::Grant(7, 1), _)]), "{entries:?}");
    }
}
