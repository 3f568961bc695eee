//! Session of the worker in etcd: the node's record, lease, watches and elections.

mod electing;
mod leaving;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use suimon_cluster_qos::{NodeGrant, NodeId, Term};
use suimon_contract::{ApiError, ClusterConfig, ErrorCode, Name, QosPolicyConfig};
use suimon_ports::{
    ClusterChange, ClusterCommitResult, ClusterCondition, ClusterElectionResult, ClusterKvStore,
    ClusterLease, ClusterStoreError, ClusterStoreErrorKind as Kind, ClusterWatch, StateStore,
};

use super::inbox::{Inbox, KeyObserver};
use super::keys::{
    ALIVE, LEADERS, MEMBERS, MemberRecord, NEXT_NODE, POLICIES, grant_key, grants_prefix,
    report_key,
};
use super::messages::MemberKeys;
use super::policies::{PolicyStore, ReadPolicies, decode_policies};
use super::records::begin_incarnation;
use super::{ClusterStoreConnector, cluster_prefix};
use crate::RandomSource;
use crate::cluster::encoding::{decode_counter, decode_entry, encode_value};

/// Duration of the node's lease: the time after which a dead node, or a dead leader, is detected.
const LEASE: Duration = Duration::from_secs(5);
/// Number of attempts if other nodes write the same keys.
const TRIES: usize = 5;

/// Dependencies of a session: connectors, state store, random numbers, inbox, version.
pub(super) struct SessionContext {
    pub(super) connector: Arc<dyn ClusterStoreConnector>,
    pub(super) state: Arc<dyn StateStore>,
    pub(super) random: RandomSource,
    pub(super) inbox: Arc<Inbox>,
    pub(super) version: String,
}

/// Failure to begin a session.
#[derive(Debug)]
pub(super) struct JoinError {
    /// True if the node is rejected, so that a retry alone does not help.
    pub(super) is_refused: bool,
    pub(super) detail: String,
}

impl From<ClusterStoreError> for JoinError {
    fn from(error: ClusterStoreError) -> Self {
        let is_refused = matches!(error.kind, Kind::NotAllowed | Kind::Refused);
        Self { is_refused, detail: error.detail }
    }
}

pub(super) struct Session {
    number: u64,
    pub(super) store: Arc<dyn ClusterKvStore>,
    root: String,
    node: Name,
    pub(super) member: MemberRecord,
    /// Revision of the member's record. Writes of the node fail if the record has changed.
    written: u64,
    lease: Box<dyn ClusterLease>,
    inbox: Arc<Inbox>,
    _watches: Vec<Box<dyn ClusterWatch>>,
    /// Stores of which this node is the leader, with the watches of their reports.
    led_stores: BTreeMap<Name, (Term, Box<dyn ClusterWatch>)>,
    /// Resigned terms whose election keys may still exist in etcd.
    resigned: BTreeMap<Name, Term>,
}

/// Returns true for errors that end without a change of the configuration: those of etcd and of
/// files.
const fn may_pass(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::HostError | ErrorCode::Unreachable | ErrorCode::DeviceMissing)
}

impl Session {
    /// Connects to etcd, registers the node and takes its name. Returns the session and the shared
    /// policies.
    pub(super) fn begin(
        context: &SessionContext,
        number: u64,
        config: &ClusterConfig,
    ) -> Result<(Self, ReadPolicies), JoinError> {
        let refusal = |detail: String| JoinError { is_refused: true, detail };
        let store = context.connector.connect(config).map_err(|error| JoinError {
            is_refused: !may_pass(error.code),
            detail: error.message,
        })?;
        let root = cluster_prefix(&config.name);
        let (member, written) = register(context, store.as_ref(), &root, &config.node)?;
        let lease = store.grant_lease(LEASE)?;
        let inbox = &context.inbox;
        let mut watches = Vec::new();
        for prefix in [MEMBERS, ALIVE, LEADERS, POLICIES, &grants_prefix(member.id)] {
            let observer = KeyObserver::new(inbox, number, &root);
            watches.push(store.watch(&format!("{root}{prefix}"), observer)?);
        }
        let session = Self {
            number,
            store,
            root,
            node: config.node.clone(),
            member,
            written,
            lease,
            inbox: Arc::clone(inbox),
            _watches: watches,
            led_stores: BTreeMap::new(),
            resigned: BTreeMap::new(),
        };
        if session.take_name()? {
            let policies = session.policies()?;
            return Ok((session, policies));
        }
        Err(refusal(format!(
            "another running host is node `{}`; give one of them another name",
            config.node
        )))
    }

    fn key(&self, short: &str) -> String {
        format!("{}{short}", self.root)
    }

    /// Returns the value of the node's keys: node name, host identity and number of the daemon's
    /// start.
    fn owner(&self) -> String {
        format!("{} {} {}", self.node, self.member.host_id, self.member.incarnation)
    }

    /// Writes the node's `alive/` key, bound to its lease. Returns false if another host uses the
    /// node's name.
    fn take_name(&self) -> Result<bool, ClusterStoreError> {
        let key = self.key(&format!("{ALIVE}{}", self.node));
        match self.store.campaign(&key, self.owner().as_bytes(), self.lease.as_ref())? {
            ClusterElectionResult::Elected(_) => Ok(true),
            ClusterElectionResult::OtherLeader(owner, created) if self.is_earlier_start(&owner) => {
                // The earlier process has ended: this one owns its state directory.
                let condition = [ClusterCondition::KeyCreatedAt(key.clone(), created)];
                self.store.commit(&condition, &[ClusterChange::Remove(key.clone())])?;
                let election =
                    self.store.campaign(&key, self.owner().as_bytes(), self.lease.as_ref())?;
                Ok(matches!(election, ClusterElectionResult::Elected(_)))
            }
            ClusterElectionResult::OtherLeader(..) => Ok(false),
        }
    }

    fn is_earlier_start(&self, owner: &[u8]) -> bool {
        let prefix = format!("{} {} ", self.node, self.member.host_id);
        owner.starts_with(prefix.as_bytes())
    }

    /// Writes the node's report on a store. Returns false if the node is not a member any more.
    pub(super) fn report(&self, store: &Name, report: Vec<u8>) -> Result<bool, ClusterStoreError> {
        let key = self.key(&report_key(store, self.member.id));
        let change = ClusterChange::Put(key, report, None);
        let commit = self.store.commit(&[self.is_member()], &[change])?;
        Ok(matches!(commit, ClusterCommitResult::Committed(_)))
    }

    fn is_member(&self) -> ClusterCondition {
        ClusterCondition::KeyUnmodifiedSince(
            self.key(&format!("{MEMBERS}{}", self.node)),
            self.written,
        )
    }

    /// Returns the present keys of members and of running nodes.
    pub(super) fn read_members(&self) -> Result<MemberKeys, ClusterStoreError> {
        let views = [self.store.read(&self.key(MEMBERS))?, self.store.read(&self.key(ALIVE))?];
        let revision = views.iter().map(|view| view.revision).min().unwrap_or_default();
        let entries = views.into_iter().flat_map(|view| view.entries);
        let entries = entries.filter_map(|entry| {
            let key = entry.key.strip_prefix(&self.root)?.to_owned();
            Some((key, entry))
        });
        Ok(MemberKeys { revision, entries: entries.collect() })
    }

    /// Returns all policies of the cluster.
    fn policies(&self) -> Result<ReadPolicies, ClusterStoreError> {
        let view = self.store.read(&self.key(POLICIES))?;
        let policies = decode_policies(&self.root, &view.entries);
        Ok(ReadPolicies { revision: view.revision, policies })
    }

    /// Adds a policy to the cluster, unless a policy of that name exists.
    pub(super) fn add_policy(&self, policy: &QosPolicyConfig) -> Result<(), ApiError> {
        let policy_store =
            PolicyStore { store: self.store.as_ref(), key_prefix: self.root.clone() };
        policy_store.add(policy)
    }

    /// Writes grants of a term, and removes those of the nodes `node_ids`. Returns false if the
    /// term has ended.
    pub(super) fn write(
        &self,
        store: &Name,
        term: Term,
        grants: &[(NodeId, NodeGrant)],
        node_ids: &[NodeId],
    ) -> Result<bool, ClusterStoreError> {
        let fence =
            [ClusterCondition::KeyCreatedAt(self.key(&format!("{LEADERS}{store}")), term.0)];
        let puts = grants.iter().map(|(node, grant)| {
            ClusterChange::Put(self.key(&grant_key(*node, store)), encode_value(grant), None)
        });
        let removes =
            node_ids.iter().map(|node| ClusterChange::Remove(self.key(&grant_key(*node, store))));
        let changes: Vec<ClusterChange> = puts.chain(removes).collect();
        for chunk in changes.chunks(self.store.changes_max().saturating_sub(1).max(1)) {
            if self.store.commit(&fence, chunk)? == ClusterCommitResult::ConditionFailed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Resigns as the leader of a store. [`Self::renew`] repeats a failed attempt, because the key
    /// stays as long as the node's lease is kept alive.
    pub(super) fn resign(&mut self, store: &Name, term: Term) -> Result<(), ClusterStoreError> {
        // The node may have been elected again since.
        if self.led_stores.get(store).is_some_and(|(led, _)| *led == term) {
            self.led_stores.remove(store);
        }
        self.resigned.insert(store.clone(), term);
        let key = self.key(&format!("{LEADERS}{store}"));
        let is_ours = [ClusterCondition::KeyCreatedAt(key.clone(), term.0)];
        self.store.commit(&is_ours, &[ClusterChange::Remove(key)])?;
        self.resigned.remove(store);
        Ok(())
    }

    /// Renews an expired lease, and repeats failed resignations. Returns false if another host uses
    /// the node's name.
    pub(super) fn renew(&mut self) -> Result<bool, ClusterStoreError> {
        if self.lease.remaining() == Duration::ZERO {
            // Elections are bound to the former lease. It is replaced only when a new lease exists,
            // because the former one may turn out to be valid.
            self.lease = self.store.grant_lease(LEASE)?;
            self.led_stores.clear();
            self.resigned.clear();
        }
        for (store, term) in self.resigned.clone() {
            self.resign(&store, term)?;
        }
        self.take_name()
    }

    /// Removes the node's report on a store and the grant for the node. The caller has given back
    /// the reservation before. Returns false if the node is no longer a member of the cluster.
    pub(super) fn withdraw(&self, store: &Name) -> Result<bool, ClusterStoreError> {
        let keys = [report_key(store, self.member.id), grant_key(self.member.id, store)];
        let changes = keys.map(|key| ClusterChange::Remove(self.key(&key)));
        let commit = self.store.commit(&[self.is_member()], &changes)?;
        Ok(matches!(commit, ClusterCommitResult::Committed(_)))
    }

    /// Resigns all elections and removes the `alive/` key, so that other nodes need not wait until
    /// the lease expires.
    pub(super) fn end(&mut self) {
        for (store, (term, _)) in std::mem::take(&mut self.led_stores) {
            if let Err(error) = self.resign(&store, term) {
                tracing::debug!(
                    %error,
                    "the next leader cannot be elected before the lease expires"
                );
                return;
            }
        }
        let alive = self.key(&format!("{ALIVE}{}", self.node));
        let _ = self.store.commit(&[], &[ClusterChange::Remove(alive)]);
    }
}

/// Writes the node's record, with a higher number of start than before. Returns the record and its
/// revision.
fn register(
    context: &SessionContext,
    store: &dyn ClusterKvStore,
    root: &str,
    node: &Name,
) -> Result<(MemberRecord, u64), JoinError> {
    let failed = |error: suimon_ports::StateStoreError| JoinError {
        is_refused: true,
        detail: format!("the state directory of this host cannot be used: {error}"),
    };
    let refusal = |detail| JoinError { is_refused: true, detail };
    let key = format!("{root}{MEMBERS}{node}");
    let mut at_least = 0;
    for _ in 0..TRIES {
        let random = || (context.random)();
        let host = begin_incarnation(context.state.as_ref(), at_least, random).map_err(failed)?;
        let view_entry = store.read(&key)?.entries.into_iter().find(|entry| entry.key == key);
        let mut conditions = Vec::new();
        let mut changes = Vec::new();
        let id = match &view_entry {
            Some(entry) => {
                let known_member: MemberRecord = decode_entry(entry).ok_or_else(|| {
                    refusal(format!(
                        "the value of etcd key {key} cannot be read: another version has written \
                         it, or it is damaged"
                    ))
                })?;
                if known_member.host_id != host.host_id {
                    return Err(refusal(format!(
                        "node `{node}` is another host; give this host another name, or, if that \
                         host is switched off and will not return, run `suimon cluster remove \
                         {node}` on a node"
                    )));
                }
                if known_member.incarnation >= host.incarnation {
                    at_least = known_member.incarnation;
                    continue;
                }
                conditions.push(ClusterCondition::KeyUnmodifiedSince(
                    key.clone(),
                    entry.modified_revision,
                ));
                known_member.id
            }
            None => {
                conditions.push(ClusterCondition::KeyAbsent(key.clone()));
                assign_number(store, root, &mut conditions, &mut changes)?
            }
        };
        let (host, incarnation) = (host.host_id, host.incarnation);
        let record =
            MemberRecord { id, host_id: host, incarnation, version: context.version.clone() };
        changes.push(ClusterChange::Put(key.clone(), encode_value(&record), None));
        if let ClusterCommitResult::Committed(revision) = store.commit(&conditions, &changes)? {
            return Ok((record, revision));
        }
    }
    Err(refusal(format!("another node changes etcd key {key} at the same time; retry")))
}

/// Returns the number of a new node, and adds its assignment to a transaction.
fn assign_number(
    store: &dyn ClusterKvStore,
    root: &str,
    conditions: &mut Vec<ClusterCondition>,
    changes: &mut Vec<ClusterChange>,
) -> Result<NodeId, JoinError> {
    let key = format!("{root}{NEXT_NODE}");
    let entry = store.read(&key)?.entries.into_iter().find(|entry| entry.key == key);
    conditions.push(match &entry {
        Some(entry) => ClusterCondition::KeyUnmodifiedSince(key.clone(), entry.modified_revision),
        None => ClusterCondition::KeyAbsent(key.clone()),
    });
    // With a number in use, the node would get the grants of another one.
    let (number, next) = decode_counter(entry.as_ref()).ok_or_else(|| JoinError {
        is_refused: true,
        detail: format!(
            "the value of etcd key {key} is not the number of a new node: write a number that is \
             greater than `id` in the values of all keys below {root}{MEMBERS}"
        ),
    })?;
    changes.push(ClusterChange::Put(key, encode_value(&next), None));
    Ok(NodeId(number))
}
