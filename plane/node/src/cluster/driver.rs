//! Cluster thread: drives members and allocators. It never blocks on etcd or stores.
//!
//! - [`desired`]: cluster and shared stores of the configuration. [`membership`]: joining and
//!   leaving. [`releasing`]: stores that a change stops sharing.
//! - [`receiving`]: keys of the cluster, and results of the worker. [`ignored_members`]: members
//!   beyond the limit.
//! - [`sampling`]: loads of disks and identities of stores; [`heartbeats`]: heartbeats on stores.
//! - [`leading`]: elections of leaders. [`policies`]: shared QoS policies.
//! - [`execution`]: actions of members and allocators.

mod desired;
mod execution;
mod heartbeats;
mod ignored_members;
mod leading;
mod membership;
mod policies;
mod receiving;
mod releasing;
mod sampling;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use suimon_cluster_qos::NodeId;
use suimon_contract::{ClusterConfig, Name};
use suimon_ports::ClusterKvStore;
use suimon_quantity::Time;

use self::ignored_members::IgnoredMembers;
use self::policies::KnownPolicies;
use super::events;
use super::inbox::KeyState;
use super::keys::MemberRecord;
use super::loads::SAMPLE_INTERVAL;
use super::messages::Task;
use super::releasing::ReleaseRequest;
use super::session::SessionContext;
use super::shared_store::SharedStore;
use super::status::Reachability;
use super::worker;
use super::worker::Tasks;
use crate::command::Command;
use crate::events::EventDraft;
use crate::shared::Shared;

/// Interval between attempts to join the cluster.
const RETRY: Duration = Duration::from_secs(1);
/// Interval between attempts to be elected.
const ELECT: Duration = Duration::from_millis(500);
/// Interval at which the session's etcd lease is checked and, if it has expired, replaced.
const TEND: Duration = Duration::from_secs(1);

/// Starts the cluster thread and the worker.
pub(super) fn start(
    shared: &Arc<Shared>,
    commands: SyncSender<Command>,
) -> std::io::Result<(JoinHandle<()>, JoinHandle<()>)> {
    let tasks = Arc::new(Tasks::default());
    let context = SessionContext {
        connector: Arc::clone(&shared.cluster.stores),
        state: shared.store.clone(),
        random: Arc::clone(&shared.disks.dependencies.random),
        inbox: Arc::clone(&shared.cluster.inbox),
        version: shared.version.clone(),
    };
    let mut driver = Driver::new(shared, &tasks, commands);
    let todo = Arc::clone(&tasks);
    let worker = Builder::new()
        .name("suimon-clstore".to_owned())
        .spawn(move || worker::run(&context, &todo))?;
    let driver = Builder::new().name("suimon-cluster".to_owned()).spawn(move || driver.run());
    match driver {
        Ok(driver) => Ok((driver, worker)),
        Err(error) => {
            tasks.stop();
            // The worker has no task that blocks.
            let _ = worker.join();
            Err(error)
        }
    }
}

/// State of the connection to the cluster.
enum Link {
    /// No cluster is configured.
    None,
    /// Not joined. `at`: time of the next attempt; `None` while an attempt is in progress.
    Trying {
        at: Option<Time>,
    },
    Up {
        store: Arc<dyn ClusterKvStore>,
    },
}

struct Driver {
    shared: Arc<Shared>,
    tasks: Arc<Tasks>,
    /// Queue of the control thread. Sending never blocks.
    commands: SyncSender<Command>,
    policies: KnownPolicies,
    /// True if the minimums in effect have changed and the control thread has not been notified
    /// yet.
    needs_limits: bool,
    session: u64,
    config: Option<ClusterConfig>,
    link: Link,
    /// Number of this node in the cluster.
    node: NodeId,
    /// Number of the daemon's start, higher than those of earlier starts.
    incarnation: u64,
    /// Number of heartbeats that this process has written.
    heartbeats: u64,
    stores: BTreeMap<Name, SharedStore>,
    members: BTreeMap<String, MemberRecord>,
    alive: BTreeSet<String>,
    /// Members that are not in `members` and `alive` because those are full.
    ignored: IgnoredMembers,
    /// Keys received before this node's number was known, by name below the cluster's prefix.
    early: BTreeMap<String, KeyState>,
    sampled_at: Option<Time>,
    tended: Time,
    /// Last reported reason why the host is rejected as a node.
    refused: Option<String>,
    is_reachable: bool,
    /// True while reservations are given back in order to leave.
    is_leaving: bool,
    /// True if the node has left and the change that removes `[cluster]` is not made yet.
    has_left: bool,
    /// Stores that the current change stops sharing.
    releasing: Option<ReleaseRequest>,
    /// Stores that this host does not share and that may have records of this node.
    withdrawals: BTreeSet<Name>,
    /// Events to append to the log at the end of the current iteration of the thread.
    drafts: RefCell<Vec<EventDraft>>,
}

impl Driver {
    fn new(shared: &Arc<Shared>, tasks: &Arc<Tasks>, commands: SyncSender<Command>) -> Self {
        Self {
            commands,
            policies: KnownPolicies::default(),
            needs_limits: false,
            shared: Arc::clone(shared),
            tasks: Arc::clone(tasks),
            session: 0,
            config: None,
            link: Link::None,
            node: NodeId(0),
            incarnation: 0,
            heartbeats: 0,
            stores: BTreeMap::new(),
            members: BTreeMap::new(),
            alive: BTreeSet::new(),
            ignored: IgnoredMembers::default(),
            early: BTreeMap::new(),
            sampled_at: None,
            tended: Time::ZERO,
            refused: None,
            is_reachable: true,
            is_leaving: false,
            has_left: false,
            releasing: None,
            withdrawals: BTreeSet::new(),
            drafts: RefCell::default(),
        }
    }

    fn now(&self) -> Time {
        self.shared.plane.now()
    }

    fn run(&mut self) {
        self.apply_desired_state();
        if self.config.is_none() {
            self.remove_former_records();
        }
        loop {
            self.poll();
            let messages = self.shared.cluster.inbox.wait(self.pause());
            if messages.is_stop_requested {
                break;
            }
            self.handle_input(messages);
        }
        self.write_drafts();
        self.tasks.stop();
    }

    /// Returns how long the thread may block: until the next deadline, at most [`SAMPLE_INTERVAL`];
    /// [`TEND`] if there is neither a cluster nor a shared store.
    fn pause(&self) -> Duration {
        let now = self.now();
        if matches!(self.link, Link::None) && self.stores.is_empty() {
            return TEND;
        }
        let next = self.stores.values().filter_map(SharedStore::next_deadline);
        let next_sample = self.sampled_at.map(|sampled_at| sampled_at + SAMPLE_INTERVAL);
        let next = next.chain(next_sample).min().unwrap_or(now + SAMPLE_INTERVAL);
        next.since(now).clamp(Duration::from_millis(1), SAMPLE_INTERVAL)
    }

    /// Executes everything that is due, then publishes the status and the events.
    fn poll(&mut self) {
        let now = self.now();
        if let (Link::Trying { at: Some(retry_at) }, Some(config)) = (&self.link, &self.config) {
            if *retry_at <= now && self.may_join() {
                let begin = Task::BeginSession(Box::new(config.clone()));
                self.has_left = false;
                self.link = Link::Trying { at: None };
                self.begin_session();
                self.tasks.push(self.session, begin);
            }
        }
        if self.sampled_at.is_none_or(|sampled_at| now >= sampled_at + SAMPLE_INTERVAL)
            && !self.stores.is_empty()
        {
            self.sampled_at = Some(now);
            self.sample(now);
        }
        if matches!(self.link, Link::Up { .. }) && now >= self.tended + TEND {
            self.tended = now;
            self.tasks.push(self.session, Task::RenewLease);
            self.withdraw_unshared_stores();
            self.read_ignored_members();
        }
        for store in self.stores.values_mut() {
            store.handle_deadlines(now);
        }
        self.check_identities(now);
        self.write_heartbeats(now);
        self.start_elections(now);
        self.execute();
        self.continue_release();
        self.adopt_policies(now);
        if self.needs_limits {
            self.needs_limits = self.commands.try_send(Command::PublishLimits).is_err();
        }
        self.report_reachability();
        self.show(now);
        self.leave_if_reservations_returned();
        self.write_drafts();
    }

    fn begin_session(&mut self) {
        self.session += 1;
        self.shared.cluster.inbox.begin_session(self.session);
        self.early.clear();
        self.members.clear();
        self.alive.clear();
        self.ignored = IgnoredMembers::default();
        self.policies.processed = 0;
    }

    /// Queues events. They are appended to the log at the end of the iteration, when the published
    /// status includes their cause.
    fn emit(&self, drafts: impl IntoIterator<Item = EventDraft>) {
        self.drafts.borrow_mut().extend(drafts);
    }

    fn write_drafts(&self) {
        self.shared.events.append(self.drafts.take());
    }

    fn node_name(&self, node: NodeId) -> String {
        let (members, shared) = (&self.members, &self.shared);
        NameLookup { members, shared, policies: &self.policies }.name_of(node)
    }

    /// Publishes the state of cluster and stores for status queries.
    fn show(&self, now: Time) {
        let mut view = self.shared.cluster.view();
        view.update(now, &self.stores, &self.members, &self.alive);
        view.policies = self.policies.keys();
        view.store = match &self.link {
            Link::Up { store } => Some(Arc::clone(store)),
            _ => None,
        };
        if matches!(self.link, Link::None) {
            view.reachability = Reachability::None;
        }
    }
}

/// Lookup of names of nodes, disks and policies. Unknown ones are shown by number.
struct NameLookup<'a> {
    members: &'a BTreeMap<String, MemberRecord>,
    shared: &'a Shared,
    policies: &'a KnownPolicies,
}

impl NameLookup<'_> {
    fn name_of(&self, node: NodeId) -> String {
        let member = self.members.iter().find(|(_, member)| member.id == node);
        member.map_or_else(|| format!("node number {}", node.0), |(name, _)| name.clone())
    }
}

impl events::ClusterNames for NameLookup<'_> {
    fn node_name(&self, node: NodeId) -> String {
        self.name_of(node)
    }

    fn disk_name(&self, node: NodeId, disk: suimon_cluster_qos::DiskKey) -> String {
        let disk_name = self.shared.cluster.view().names.get(&(node, disk)).cloned();
        disk_name.unwrap_or_else(|| format!("{:016x}", disk.0))
    }

    fn policy_name(&self, policy: suimon_cluster_qos::PolicyKey) -> String {
        let policy_entry =
            self.policies.policies.iter().find(|(_, (record, _))| record.key == policy);
        policy_entry
            .map_or_else(|| format!("policy number {}", policy.0), |(name, _)| name.to_string())
    }
}
