//! The thread that decides: it drives members and allocators, and waits for nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use suimon_cluster_qos::{AllocatorEvent, Capability, Grant, MemberEvent, NodeId, Term};
use suimon_contract::{ClusterConfig, EventKind, Name};
use suimon_ports::{ClusterEntry, ClusterStore};
use suimon_quantity::Time;
use suimon_storage_qos as local;

use super::identity::{self, Known};
use super::inbox::{Heard, Mail};
use super::keys::{
    ALIVE, GRANTS, LEADERS, MEMBERS, MemberRecord, REPORTS, STORES, Said, grant_of, report_of,
};
use super::loads::LOOK;
use super::records::{load_kept, save_kept};
use super::session::{Ground, read, write};
use super::shared_store::{SharedStore, Todo};
use super::status::Reach;
use super::told;
use super::worker::{self, Answer, Task, Tasks};
use super::{cluster_prefix, shared_stores};
use crate::disks::capability;
use crate::events::Draft;
use crate::shared::Shared;

/// Between two tries to be a node of the cluster.
const RETRY: Duration = Duration::from_secs(1);
/// Between two tries to be elected.
const ELECT: Duration = Duration::from_millis(500);
/// How often it is looked whether a store is the cluster's.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How often the lease is seen to.
const TEND: Duration = Duration::from_secs(1);
/// Without an answer for so long, the cluster's store is not reachable.
const SILENT: Duration = Duration::from_secs(5);

/// Starts the driver and the worker.
pub(super) fn start(shared: &Arc<Shared>) -> std::io::Result<(JoinHandle<()>, JoinHandle<()>)> {
    let tasks = Arc::new(Tasks::default());
    let ground = Ground {
        stores: Arc::clone(&shared.cluster.stores),
        state: Arc::clone(&shared.store),
        random: Arc::clone(&shared.disks.parts.random),
        inbox: Arc::clone(&shared.cluster.inbox),
        version: shared.version.clone(),
    };
    let mut driver = Driver::new(shared, &tasks);
    let todo = Arc::clone(&tasks);
    let worker = Builder::new()
        .name("suimon-clstore".to_owned())
        .spawn(move || worker::run(&ground, &todo))?;
    let driver = Builder::new().name("suimon-cluster".to_owned()).spawn(move || driver.run());
    match driver {
        Ok(driver) => Ok((driver, worker)),
        Err(error) => {
            tasks.stop();
            Err(error)
        }
    }
}

/// What is known of the connection.
enum Link {
    /// There is no cluster.
    None,
    /// Nothing came of it yet; it is tried again then.
    Trying {
        at: Option<Time>,
    },
    Up {
        store: Arc<dyn ClusterStore>,
    },
}

struct Driver {
    shared: Arc<Shared>,
    tasks: Arc<Tasks>,
    session: u64,
    config: Option<ClusterConfig>,
    link: Link,
    /// The host's number and the start of its daemon.
    node: NodeId,
    stores: BTreeMap<Name, SharedStore>,
    members: BTreeMap<String, MemberRecord>,
    alive: BTreeSet<String>,
    /// What was heard before it was known which node this is.
    early: BTreeMap<String, Heard>,
    looked: Option<Time>,
    tended: Time,
    /// Why it is not a node, as it was told.
    refused: Option<String>,
    is_reachable: bool,
    /// What is reserved is being given back.
    leaves: bool,
}

impl Driver {
    fn new(shared: &Arc<Shared>, tasks: &Arc<Tasks>) -> Self {
        Self {
            shared: Arc::clone(shared),
            tasks: Arc::clone(tasks),
            session: 0,
            config: None,
            link: Link::None,
            node: NodeId(0),
            stores: BTreeMap::new(),
            members: BTreeMap::new(),
            alive: BTreeSet::new(),
            early: BTreeMap::new(),
            looked: None,
            tended: Time::ZERO,
            refused: None,
            is_reachable: true,
            leaves: false,
        }
    }

    fn now(&self) -> Time {
        self.shared.plane.now()
    }

    fn run(&mut self) {
        self.follow_desired();
        loop {
            self.turn();
            let mail = self.shared.cluster.inbox.wait(self.pause());
            if mail.stops {
                break;
            }
            self.hear(mail);
        }
        self.tasks.stop();
    }

    /// How long nothing has to be done.
    fn pause(&self) -> Duration {
        let now = self.now();
        if matches!(self.link, Link::None) && self.stores.is_empty() {
            return TEND;
        }
        let next = self.stores.values().filter_map(SharedStore::next_deadline);
        let look = self.looked.map(|at| at + LOOK);
        let next = next.chain(look).min().unwrap_or(now + LOOK);
        next.since(now).clamp(Duration::from_millis(1), LOOK)
    }

    /// Does what is due.
    fn turn(&mut self) {
        let now = self.now();
        if let (Link::Trying { at: Some(at) }, Some(config)) = (&self.link, &self.config) {
            if *at <= now {
                let begin = Task::Begin(Box::new(config.clone()));
                self.link = Link::Trying { at: None };
                self.begin_session();
                self.tasks.push(self.session, begin);
            }
        }
        if self.looked.is_none_or(|at| now >= at + LOOK) && !self.stores.is_empty() {
            self.looked = Some(now);
            self.look(now);
        }
        if matches!(self.link, Link::Up { .. }) && now >= self.tended + TEND {
            self.tended = now;
            self.tasks.push(self.session, Task::Tend);
        }
        for store in self.stores.values_mut() {
            store.handle_deadlines(now);
        }
        self.look_at_identities(now);
        self.elect(now);
        self.carry_out();
        self.watch_reach();
        self.show(now);
        self.leave_if_given_back();
    }

    fn begin_session(&mut self) {
        self.session += 1;
        self.shared.cluster.inbox.begin_session(self.session);
        self.early.clear();
        self.members.clear();
        self.alive.clear();
    }

    fn hear(&mut self, mail: Mail) {
        if mail.is_changed {
            self.follow_desired();
        }
        if let Some(leaves) = mail.leaves {
            self.leaves = leaves;
            self.looked = None;
        }
        for answer in mail.answers {
            self.hear_answer(answer);
        }
        self.early.extend(mail.heard);
        if matches!(self.link, Link::Up { .. }) {
            for (key, heard) in std::mem::take(&mut self.early) {
                self.hear_key(&key, &heard);
            }
        }
    }

    /// Follows desired state: which cluster, and which of its stores.
    fn follow_desired(&mut self) {
        let (now, desired) = (self.now(), self.shared.desired());
        let config = &desired.config;
        if config.cluster != self.config {
            self.change_cluster(config.cluster.clone());
        }
        let wanted = shared_stores(config);
        let gone: Vec<Name> =
            self.stores.keys().filter(|name| !wanted.contains_key(name)).cloned().collect();
        for name in gone {
            if let Some(store) = self.stores.remove(&name) {
                self.shared.disks.parts.plane.set_cap(store.id, None);
                if let Some(term) = store.leads() {
                    self.tasks.push(self.session, Task::Resign { store: name, term });
                }
            }
        }
        let measured = self.shared.disks.measured();
        for (name, spec) in wanted {
            let Some(cluster) = &self.config else { return };
            if !self.stores.contains_key(name) {
                let kept = load_kept(self.shared.store.as_ref(), &cluster.name, name);
                let kept = kept.unwrap_or_else(|error| {
                    tracing::error!(store = %name, %error, "what is reserved is not known");
                    Default::default()
                });
                let id = self.shared.disks.store_id(name);
                let mut store =
                    SharedStore::new(now, name.clone(), id, kept, self.shared.recording.clone());
                if let (Link::Up { .. }, Some(of)) = (&self.link, self.own_record()) {
                    store.begin(now, of.id, of.incarnation);
                }
                self.stores.insert(name.clone(), store);
            }
            let Some(store) = self.stores.get_mut(name) else { continue };
            store.normalization_bytes = spec.normalization_bytes.bytes();
            store.capability = match capability(spec, &measured) {
                local::Capability::Declared(iops) => Some(Capability::Declared(iops)),
                local::Capability::Measured(iops) => Some(Capability::Measured(iops)),
                local::Capability::Unknown => None,
            };
            store.follow_capability(now);
        }
        self.looked = None;
    }

    /// The host is a node of another cluster from now on, or reaches it otherwise.
    fn change_cluster(&mut self, config: Option<ClusterConfig>) {
        let is_same = self.config.as_ref().map(|of| (&of.name, &of.node))
            == config.as_ref().map(|of| (&of.name, &of.node));
        if !is_same {
            for store in std::mem::take(&mut self.stores).into_values() {
                self.shared.disks.parts.plane.set_cap(store.id, None);
            }
        }
        self.begin_session();
        self.tasks.push(self.session, Task::End);
        self.link = match &config {
            Some(_) => Link::Trying { at: Some(self.now()) },
            None => Link::None,
        };
        (self.config, self.refused, self.leaves) = (config, None, false);
        self.is_reachable = true;
    }

    fn own_record(&self) -> Option<&MemberRecord> {
        self.members.get(self.config.as_ref()?.node.as_str())
    }

    fn hear_answer(&mut self, answer: Answer) {
        let now = self.now();
        match answer {
            Answer::Begun { store, member } => self.join(now, store, member),
            Answer::NotBegun { is_refused, detail } => {
                self.link = Link::Trying { at: Some(now + RETRY) };
                self.tell_not_begun(is_refused, detail);
            }
            Answer::Elected { store, term, records } => self.lead(now, &store, term, records),
            Answer::NotElected { store } => {
                if let Some(store) = self.stores.get_mut(&store) {
                    (store.is_candidate, store.elect_at) = (false, now + ELECT);
                }
            }
            Answer::Written { store, term, is_written } => {
                let name = store;
                let store = self.stores.get_mut(&name).filter(|of| of.leads() == Some(term));
                let Some(store) = store else { return };
                let event =
                    if is_written { AllocatorEvent::Written } else { AllocatorEvent::WriteFailed };
                store.hear_allocator(now, event);
                if !is_written {
                    store.elect_at = now + ELECT;
                    self.tell_lead_lost(&name, "a write failed, or may have");
                }
            }
            Answer::Expelled => {
                self.begin_session();
                self.tasks.push(self.session, Task::End);
                self.depose_all(now);
                self.link = Link::Trying { at: Some(now + RETRY) };
            }
            Answer::Left { failure } => self.end_leaving(failure),
            Answer::Looked { store, wrong } => self.hear_identity(now, &store, wrong),
        }
    }

    fn join(&mut self, now: Time, store: Arc<dyn ClusterStore>, member: MemberRecord) {
        let Some(config) = self.config.clone() else { return };
        self.node = member.id;
        for of in self.stores.values_mut() {
            of.begin(now, member.id, member.incarnation);
        }
        let text = format!(
            "The host is node {} of cluster {}, number {}.",
            config.node, config.name, member.id.0
        );
        self.tell([Draft::new(EventKind::ClusterJoined, "cluster", text)
            .with("cluster", &config.name)
            .with("node", &config.node)
            .with("number", member.id.0)]);
        self.members.insert(config.node.to_string(), member);
        self.link = Link::Up { store };
        (self.refused, self.looked, self.tended) = (None, None, now);
    }

    fn tell_not_begun(&mut self, is_refused: bool, detail: String) {
        let is_told = self.refused.is_some() || (!is_refused && !self.is_reachable);
        if !is_told {
            let kind =
                if is_refused { EventKind::ClusterRefused } else { EventKind::ClusterUnreachable };
            let text = format!("The host is not a node of its cluster: {detail}");
            self.tell([Draft::new(kind, "cluster", text).with("reason", &detail)]);
        }
        self.is_reachable = is_refused;
        self.refused = is_refused.then(|| detail.clone());
        self.shared.cluster.view().reach =
            if is_refused { Reach::Refused(detail) } else { Reach::Unreachable(detail) };
    }

    fn lead(&mut self, now: Time, name: &Name, term: Term, records: Vec<(NodeId, Grant)>) {
        let Some(store) = self.stores.get_mut(name) else {
            self.tasks.push(self.session, Task::Resign { store: name.clone(), term });
            return;
        };
        (store.is_candidate, store.elect_at) = (false, now + ELECT);
        let gone: Vec<NodeId> = records.iter().map(|(node, _)| *node).collect();
        if !store.lead(now, term, records) {
            self.tasks.push(self.session, Task::Resign { store: name.clone(), term });
            return;
        }
        // Nodes that left while nobody led.
        let members: BTreeSet<NodeId> = self.members.values().map(|of| of.id).collect();
        for node in gone.into_iter().filter(|node| !members.contains(node)) {
            store.forget(now, node);
        }
        let text = format!("This node divides store {name} among nodes, in term {}.", term.0);
        let draft = Draft::new(EventKind::ClusterLeads, format!("store/{name}"), text);
        self.tell([draft.with("term", term.0)]);
    }

    fn hear_key(&mut self, key: &str, heard: &Heard) {
        let (now, entry) = (self.now(), heard.entry.as_ref());
        if let Some(name) = key.strip_prefix(MEMBERS) {
            let record = entry.and_then(read::<MemberRecord>);
            let before = match record {
                Some(record) => self.members.insert(name.to_owned(), record),
                None => self.members.remove(name),
            };
            let id = self.members.get(name).map(|of| of.id);
            if let Some(before) = before.filter(|before| Some(before.id) != id) {
                self.stores.values_mut().for_each(|store| store.forget(now, before.id));
            }
        } else if let Some(name) = key.strip_prefix(ALIVE) {
            match entry {
                Some(_) => self.alive.insert(name.to_owned()),
                None => self.alive.remove(name),
            };
        } else if let Some(name) = key.strip_prefix(LEADERS) {
            self.hear_leader(now, name, heard);
        } else if key.starts_with(GRANTS) {
            let Some((node, name)) = grant_of(key).filter(|(node, _)| *node == self.node) else {
                return;
            };
            let grant = entry.and_then(read::<Grant>);
            let store = named(&mut self.stores, name);
            if let (Some(grant), Some(store)) = (grant, store) {
                tracing::trace!(?node, name, ?grant, "a grant came");
                store.hear_member(now, MemberEvent::Granted { grant });
            }
        } else if key.starts_with(REPORTS) {
            self.hear_report(now, key, entry);
        }
    }

    fn hear_leader(&mut self, now: Time, name: &str, heard: &Heard) {
        let Some(store) = named(&mut self.stores, name) else { return };
        // What was so before this node was elected.
        if store.leads().is_some_and(|term| heard.revision < term.0) {
            return;
        }
        let leader = heard.entry.as_ref().map(|entry| {
            let who = String::from_utf8_lossy(&entry.value);
            let node = who.split(' ').next().unwrap_or_default().to_owned();
            (node, Term(entry.created))
        });
        store.hear_leader(now, leader);
        let led = store.leads();
        if led.is_some() && store.leader.as_ref().map(|(_, term)| *term) != led {
            store.depose(now);
            let name = store.name.clone();
            self.tell_lead_lost(&name, "its election has ended");
        }
    }

    fn hear_report(&mut self, now: Time, key: &str, entry: Option<&ClusterEntry>) {
        let Some((name, node)) = report_of(key) else { return };
        let is_member = self.members.values().any(|of| of.id == node);
        let said = entry.and_then(read::<Said>).filter(|said| said.report.node == node);
        let store = named(&mut self.stores, name).filter(|of| of.leads().is_some());
        let (Some(said), Some(store), true) = (said, store, is_member) else { return };
        for (disk, name) in &said.names {
            self.shared.cluster.view().call(node, *disk, name);
        }
        if let Some((node, bytes)) = store.hear_report(now, said) {
            let (own, name) = (store.normalization_bytes, store.name.clone());
            let text = format!(
                "Node {} counts {bytes} bytes of store {name} as one operation, and {own} are \
                 counted here; set `normalization_bytes` alike on all nodes.",
                self.node_name(node)
            );
            let kind = EventKind::NodeOfOtherVersion;
            self.tell([Draft::new(kind, format!("store/{name}"), text)]);
        }
    }

    /// Looks at what disks did, and tells members.
    fn look(&mut self, now: Time) {
        let (desired, views) = (self.shared.desired(), self.shared.disks.parts.plane.stores());
        let disks = &self.shared.disks;
        for (name, store) in &mut self.stores {
            let told = store.loads.look(now, (disks, &desired.config), (name, store.id), &views);
            store.names = told.names;
            // Of another store nothing is said: what is reserved on the right one stays.
            if self.leaves || store.takes_part() {
                let loads = if self.leaves { Vec::new() } else { told.disks };
                store.hear_loads(now, loads, told.latency_ns);
            }
            // A store that came to the plane meanwhile is held to it, too.
            disks.parts.plane.set_cap(store.id, Some(store.cap()));
        }
    }

    /// Has it found out whether stores are the cluster's, where it is time to. Their file systems may
    /// not answer, so each has a thread for it.
    fn look_at_identities(&mut self, now: Time) {
        let (Link::Up { store: of }, Some(config)) = (&self.link, &self.config) else { return };
        let desired = self.shared.desired();
        let specs = shared_stores(&desired.config);
        for (name, store) in &mut self.stores {
            let Some(spec) = specs.get(name) else { continue };
            if store.look_at.is_none_or(|at| at > now) {
                continue;
            }
            store.look_at = None;
            let key = format!("{}{STORES}{name}", cluster_prefix(&config.name));
            let known = Known { store: Arc::clone(of), key };
            let (shared, session) = (Arc::clone(&self.shared), self.session);
            let (cluster, name, path) = (config.name.clone(), name.clone(), spec.path.clone());
            let look = move || {
                let random = (shared.disks.parts.random)();
                let inbox = Arc::clone(&shared.cluster.inbox);
                let asked = shared.disks.ask_store(&path, move |files| {
                    identity::check(&known, files, &cluster, random)
                });
                let wrong = asked.unwrap_or_else(|error| Err(error.to_string()));
                inbox.answer(session, Answer::Looked { store: name, wrong });
            };
            let thread = Builder::new().name("suimon-identity".to_owned()).spawn(look);
            if let Err(error) = thread {
                tracing::warn!(%error, "it is not looked whether a store is the cluster's");
                store.look_at = Some(now + LOOK_AGAIN);
            }
        }
    }

    fn hear_identity(&mut self, now: Time, name: &Name, wrong: Result<Option<String>, String>) {
        let Some(store) = self.stores.get_mut(name) else { return };
        store.look_at = Some(now + if store.is_known { LOOK_AGAIN } else { RETRY });
        let wrong = match wrong {
            Ok(wrong) => wrong,
            Err(error) => {
                tracing::warn!(store = %name, error, "it is not known whether it is the cluster's");
                return;
            }
        };
        let was = std::mem::replace(&mut store.wrong, wrong.clone());
        store.is_known = true;
        self.looked = None;
        let subject = format!("store/{name}");
        match (was, wrong) {
            (None, Some(why)) => {
                if self.stores.get_mut(name).is_some_and(|store| store.depose(now)) {
                    self.tell_lead_lost(name, "the store is another one");
                }
                let text = format!("This host takes no part in store {name}: {why}.");
                let draft = Draft::new(EventKind::SharedStoreWrong, subject, text);
                self.tell([draft.with("reason", why)]);
            }
            (Some(_), None) => {
                let text = format!("Store {name} is the cluster's.");
                self.tell([Draft::new(EventKind::SharedStoreRight, subject, text)]);
            }
            _ => {}
        }
    }

    /// Has this node be elected where nobody is.
    fn elect(&mut self, now: Time) {
        if !matches!(self.link, Link::Up { .. }) || self.leaves {
            return;
        }
        let own = self.config.as_ref().map(|config| config.node.as_str());
        for (name, store) in &mut self.stores {
            if !store.may_stand(now) {
                continue;
            }
            if let Some((node, term)) = &store.leader {
                // An election that came too late, or that could not be let go of.
                if Some(node.as_str()) == own {
                    store.elect_at = now + ELECT;
                    let task = Task::Resign { store: name.clone(), term: *term };
                    self.tasks.push(self.session, task);
                }
            } else if store.takes_part() {
                store.is_candidate = true;
                self.tasks.push(self.session, Task::Elect { store: name.clone() });
            }
        }
    }

    /// Does what members and allocators ask for, in order.
    fn carry_out(&mut self) {
        let Some(cluster) = self.config.as_ref().map(|of| of.name.clone()) else { return };
        let mut drafts = Vec::new();
        for (name, store) in &mut self.stores {
            while let Some(todo) = store.poll() {
                match todo {
                    Todo::Apply(cap) => {
                        self.shared.disks.parts.plane.set_cap(store.id, Some(cap));
                    }
                    Todo::Keep(kept) => {
                        let state = self.shared.store.as_ref();
                        if let Err(error) = save_kept(state, &cluster, name, &kept) {
                            tracing::error!(store = %name, %error, "what is reserved is not kept");
                            store.put_back(Todo::Keep(kept));
                            break;
                        }
                        store.kept = kept;
                    }
                    Todo::Send(report) => {
                        let named = report.largest.iter().chain(&report.unmet);
                        let names = named
                            .filter_map(|of| Some((of.disk, store.names.get(&of.disk)?.clone())));
                        let said = Said {
                            names: names.collect(),
                            capability_iops: store.capability.map_or(0, Capability::iops),
                            normalization_bytes: store.normalization_bytes,
                            report,
                        };
                        let task = Task::Report { store: name.clone(), said: write(&said) };
                        self.tasks.push(self.session, task);
                    }
                    Todo::TellMember(notice) => {
                        if store.is_news(notice) {
                            let reserved = store.kept.store.reserved_iops;
                            drafts.push(told::of_member(name, notice, reserved));
                        }
                    }
                    Todo::Write { term, grants, forgotten } => {
                        let task = Task::Write { store: name.clone(), term, grants, forgotten };
                        self.tasks.push(self.session, task);
                    }
                    Todo::Resign(term) => {
                        let task = Task::Resign { store: name.clone(), term };
                        self.tasks.push(self.session, task);
                    }
                    Todo::TellLeader(notice) => {
                        let known = Called { members: &self.members, shared: &self.shared };
                        drafts.extend(told::of_leader(name, &notice, &known));
                    }
                }
            }
            store.flush_records();
        }
        self.tell(drafts);
    }

    /// Tells whether the cluster's store answers.
    fn watch_reach(&mut self) {
        let Link::Up { store } = &self.link else { return };
        let age = store.age();
        let is_reachable = age.is_some_and(|age| age < SILENT);
        let reach = if is_reachable {
            Reach::Up
        } else {
            Reach::Unreachable("etcd does not answer".to_owned())
        };
        self.shared.cluster.view().reach = reach;
        if is_reachable == self.is_reachable {
            return;
        }
        self.is_reachable = is_reachable;
        let draft = if is_reachable {
            let text = "The cluster's etcd answers again.";
            Draft::new(EventKind::ClusterReachable, "cluster", text)
        } else {
            let text = "The cluster's etcd does not answer: what is lent to this host ends, what is \
                        reserved for it stays. See whether etcd's members run and reach each other.";
            Draft::new(EventKind::ClusterUnreachable, "cluster", text)
        };
        self.tell([draft]);
    }

    fn depose_all(&mut self, now: Time) {
        let lost: Vec<Name> = self
            .stores
            .values_mut()
            .filter_map(|store| store.depose(now).then(|| store.name.clone()))
            .collect();
        lost.iter().for_each(|name| self.tell_lead_lost(name, "this host is not a node any more"));
    }

    fn tell_lead_lost(&self, name: &Name, why: &str) {
        let text = format!("This node does not divide store {name} any more: {why}.");
        let draft = Draft::new(EventKind::ClusterLeadLost, format!("store/{name}"), text);
        self.tell([draft.with("reason", why)]);
    }

    fn tell(&self, drafts: impl IntoIterator<Item = Draft>) {
        self.shared.events.append(drafts.into_iter().collect());
    }

    fn node_name(&self, node: NodeId) -> String {
        Called { members: &self.members, shared: &self.shared }.name_of(node)
    }

    /// What is to be given back is: says so, and is no node any more.
    fn leave_if_given_back(&mut self) {
        let is_up = matches!(self.link, Link::Up { .. });
        if self.leaves && is_up && self.stores.values().all(SharedStore::is_given_back) {
            let stores = self.stores.keys().cloned().collect();
            self.tasks.push(self.session, Task::Leave { stores });
            self.link = Link::Trying { at: None };
        }
    }

    fn end_leaving(&mut self, failure: Option<String>) {
        if let Some(failure) = failure {
            tracing::warn!(failure, "the cluster still has this host's record");
            self.leaves = false;
            self.link = Link::Trying { at: Some(self.now()) };
            return;
        }
        self.shared.cluster.view().has_left = true;
        // Whoever asked takes `[cluster]` away now; else it is a node again.
        self.link = Link::Trying { at: Some(self.now() + Duration::from_secs(30)) };
    }

    /// Has others see how it stands.
    fn show(&self, now: Time) {
        let mut view = self.shared.cluster.view();
        view.show(now, &self.stores, &self.members, &self.alive);
        view.store = match &self.link {
            Link::Up { store } => Some(Arc::clone(store)),
            _ => None,
        };
        if matches!(self.link, Link::None) {
            view.reach = Reach::None;
        }
    }
}

fn named<'a>(
    stores: &'a mut BTreeMap<Name, SharedStore>,
    name: &str,
) -> Option<&'a mut SharedStore> {
    stores.get_mut(&name.parse::<Name>().ok()?)
}

/// What nodes and disks are called, as far as is known.
struct Called<'a> {
    members: &'a BTreeMap<String, MemberRecord>,
    shared: &'a Shared,
}

impl Called<'_> {
    fn name_of(&self, node: NodeId) -> String {
        let found = self.members.iter().find(|(_, of)| of.id == node);
        found.map_or_else(|| format!("number {}", node.0), |(name, _)| name.clone())
    }
}

impl told::Names for Called<'_> {
    fn node(&self, node: NodeId) -> String {
        self.name_of(node)
    }

    fn disk(&self, node: NodeId, disk: suimon_cluster_qos::DiskKey) -> String {
        let found = self.shared.cluster.view().names.get(&(node, disk)).cloned();
        found.unwrap_or_else(|| format!("{:016x}", disk.0))
    }
}
