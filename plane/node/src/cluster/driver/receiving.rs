//! Processing of worker results and of keys of the cluster.

use std::collections::BTreeMap;

use suimon_cluster_qos::{AllocatorEvent, NodeGrant, REPORTED_DISKS_MAX, Term};
use suimon_contract::{EventKind, Name};
use suimon_ports::ClusterEntry;
use suimon_quantity::Time;

use super::{Driver, ELECT, Link, RETRY};
use crate::cluster::elected::ElectedLeaderState;
use crate::cluster::encoding::decode_entry;
use crate::cluster::inbox::{KeyState, Messages};
use crate::cluster::keys::{
    ALIVE, GRANTS, LEADERS, MEMBERS, MemberRecord, NodeReport, POLICIES, REPORTS, parse_grant_key,
    parse_report_key,
};
use crate::cluster::messages::{MemberKeys, Task, TaskResult};
use crate::cluster::shared_store::SharedStore;
use crate::events::EventDraft;

/// Maximum number of members of a cluster that a node knows. Members beyond, until another member
/// leaves, and names that are not valid, are ignored: any holder of etcd's credentials can write
/// keys.
const MEMBERS_MAX: usize = 1024;

impl Driver {
    pub(super) fn handle_input(&mut self, messages: Messages) {
        if messages.is_desired_state_changed {
            self.apply_desired_state();
        }
        if let Some(is_leaving) = messages.leave_request {
            self.is_leaving = is_leaving;
            self.has_left &= !is_leaving;
            self.sampled_at = None;
        }
        if let Some(releasing) = messages.release_request {
            self.begin_release(releasing);
        }
        for (name, request) in messages.requests {
            if let Some(store) = self.stores.get_mut(&name) {
                (store.reservation_request, self.sampled_at) = (request, None);
            }
        }
        for answer in messages.results {
            self.handle_result(answer);
        }
        self.early.extend(messages.keys);
        if matches!(self.link, Link::Up { .. }) {
            for (key, key_state) in std::mem::take(&mut self.early) {
                self.handle_key(&key, &key_state);
            }
        }
    }

    pub(super) fn handle_result(&mut self, answer: TaskResult) {
        let now = self.now();
        match answer {
            TaskResult::SessionBegun { store, member, policies } => {
                self.join(now, store, member);
                self.handle_policies(now, policies);
            }
            TaskResult::SessionFailed { is_refused, detail } => {
                self.link = Link::Trying { at: Some(now + RETRY) };
                self.report_session_failure(is_refused, &detail);
            }
            TaskResult::Elected { store, leader_state } => {
                let ElectedLeaderState { term, recorded_grants, left_nodes, policies } =
                    leader_state;
                self.handle_policies(now, policies);
                self.begin_leadership(now, &store, term, recorded_grants, left_nodes);
            }
            TaskResult::NotElected { store } => {
                if let Some(store) = self.stores.get_mut(&store) {
                    (store.is_candidate, store.next_election_at) = (false, now + ELECT);
                }
            }
            TaskResult::GrantsWritten { store, term, is_written } => {
                let name = store;
                let store = self
                    .stores
                    .get_mut(&name)
                    .filter(|shared_store| shared_store.leader_term() == Some(term));
                let Some(store) = store else { return };
                let event = if is_written {
                    AllocatorEvent::GrantsWritten
                } else {
                    AllocatorEvent::WriteFailed
                };
                store.handle_allocator_event(now, event);
                if !is_written {
                    store.next_election_at = now + ELECT;
                    self.report_leadership_lost(
                        &name,
                        "a write to etcd failed or has an unknown result",
                    );
                }
            }
            TaskResult::MembersRead(keys) => self.handle_members_read(keys),
            TaskResult::NodeRemoved => {
                self.begin_session();
                self.tasks.push(self.session, Task::EndSession);
                self.end_all_leaderships(now);
                self.link = Link::Trying { at: Some(now + RETRY) };
            }
            TaskResult::SessionEnded { failure } => self.end_leaving(failure),
            TaskResult::HeartbeatWritten { store, heartbeats } => {
                self.handle_heartbeats(now, &store, heartbeats);
            }
            TaskResult::IdentityChecked { store, session, mismatch: identity } => {
                self.handle_identity(now, &store, (session, identity));
            }
            TaskResult::PolicyRefused { policy, reason } => {
                self.report_refused_policy(policy, &reason);
            }
            TaskResult::StoreWithdrawn { store, is_done: is_withdrawn } => {
                self.handle_withdrawn(&store, is_withdrawn);
            }
        }
    }

    pub(super) fn handle_key(&mut self, key: &str, key_state: &KeyState) {
        let (now, entry) = (self.now(), key_state.entry.as_ref());
        if let Some(name) = key.strip_prefix(MEMBERS) {
            self.ignored.record_processed_revision(key_state.revision);
            let is_known = self.members.contains_key(name);
            let is_valid = name.parse::<Name>().is_ok();
            if !is_known && (!is_valid || self.members.len() >= MEMBERS_MAX) {
                tracing::debug!(key_bytes = key.len(), "a key of a member is ignored");
                self.ignored.has_members |= is_valid && entry.is_some();
                return;
            }
            let before = match entry.map(decode_entry::<MemberRecord>) {
                Some(Some(record)) => self.members.insert(name.to_owned(), record.into_shortened()),
                // Its reservation must not be given to others: the node may use it.
                Some(None) => return,
                None => self.members.remove(name),
            };
            let id = self.members.get(name).map(|member| member.id);
            if let Some(before) = before.filter(|before| Some(before.id) != id) {
                self.stores.values_mut().for_each(|store| store.remove_node(now, before.id));
            }
        } else if let Some(name) = key.strip_prefix(ALIVE) {
            self.ignored.record_processed_revision(key_state.revision);
            match entry {
                Some(_) if name.parse::<Name>().is_err() || self.alive.contains(name) => {}
                Some(_) if self.alive.len() >= MEMBERS_MAX => self.ignored.has_running_nodes = true,
                Some(_) => {
                    self.alive.insert(name.to_owned());
                }
                None => {
                    self.alive.remove(name);
                }
            }
        } else if let Some(name) = key.strip_prefix(POLICIES) {
            self.handle_policy(now, name, key_state);
        } else if let Some(name) = key.strip_prefix(LEADERS) {
            self.handle_leader(now, name, key_state);
        } else if key.starts_with(GRANTS) {
            let Some((node, name)) = parse_grant_key(key).filter(|(node, _)| *node == self.node)
            else {
                return;
            };
            let Some(grant) = entry.and_then(decode_entry::<NodeGrant>) else { return };
            match named(&mut self.stores, name) {
                Some(store) => {
                    tracing::trace!(?node, name, ?grant, "grant received");
                    store.handle_grant(now, grant);
                }
                // This host no longer shares the store.
                None => self.withdrawals.extend(name.parse::<Name>()),
            }
        } else if key.starts_with(REPORTS) {
            self.handle_report(now, key, entry);
        }
    }

    /// Requests the keys of members if some were ignored and there is room now.
    pub(super) fn read_ignored_members(&mut self) {
        let has_room_for_member = self.ignored.has_members && self.members.len() < MEMBERS_MAX;
        let has_room_for_alive = self.ignored.has_running_nodes && self.alive.len() < MEMBERS_MAX;
        if has_room_for_member || has_room_for_alive {
            (self.ignored.has_members, self.ignored.has_running_nodes) = (false, false);
            self.tasks.push(self.session, Task::ReadMembers);
        }
    }

    /// Processes the present keys of members. They are read again if that failed, or if they are
    /// older than a key that was processed: a member that has left since would be added.
    pub(super) fn handle_members_read(&mut self, read: Option<MemberKeys>) {
        match read.filter(|read| read.revision >= self.ignored.processed_revision) {
            Some(read) => {
                for (key, entry) in read.entries {
                    let key_state = KeyState { revision: read.revision, entry: Some(entry) };
                    self.handle_key(&key, &key_state);
                }
            }
            None => (self.ignored.has_members, self.ignored.has_running_nodes) = (true, true),
        }
    }

    pub(super) fn handle_leader(&mut self, now: Time, name: &str, key_state: &KeyState) {
        let Some(store) = named(&mut self.stores, name) else { return };
        // The key's state predates this node's election.
        if store.leader_term().is_some_and(|term| key_state.revision < term.0) {
            return;
        }
        let leader = key_state.entry.as_ref().map(|entry| {
            let leader_value = String::from_utf8_lossy(&entry.value);
            let node = leader_value.split(' ').next().unwrap_or_default().to_owned();
            (node, Term(entry.created_revision))
        });
        store.handle_leader(now, leader);
        let Some(led) = store.leader_term() else { return };
        if store.leader.as_ref().map(|(_, term)| *term) != Some(led) {
            store.end_leadership(now);
            let name = store.name.clone();
            // Ends the session's watch of the store's reports.
            let resign = Task::Resign { store: name.clone(), term: led };
            self.tasks.push(self.session, resign);
            self.report_leadership_lost(&name, "its term expired");
        }
    }

    pub(super) fn handle_report(&mut self, now: Time, key: &str, entry: Option<&ClusterEntry>) {
        let Some((name, node)) = parse_report_key(key) else { return };
        let Some(entry) = entry else {
            // The node has given back what is reserved for it.
            if let Some(store) = named(&mut self.stores, name) {
                store.remove_node(now, node);
            }
            return;
        };
        let is_member = self.members.values().any(|member| member.id == node);
        let node_report =
            decode_entry::<NodeReport>(entry).filter(|node_report| node_report.report.node == node);
        let store = named(&mut self.stores, name)
            .filter(|shared_store| shared_store.leader_term().is_some());
        let (Some(node_report), Some(store), true) = (node_report, store, is_member) else {
            return;
        };
        // A report names the disks of its two lists.
        for (disk, name) in node_report.names.iter().take(2 * REPORTED_DISKS_MAX) {
            self.shared.cluster.view().remember_disk_name(node, *disk, name);
        }
        if let Some((node, bytes)) = store.handle_report(now, node_report, entry.created_revision) {
            let (own_bytes, name) = (store.normalization_bytes, store.name.clone());
            let node = self.node_name(node);
            let text = format!(
                "Node {node} counts {bytes} bytes of store {name} as one operation, this host \
                 {own_bytes} bytes. Set the same `normalization_bytes` on all nodes."
            );
            let kind = EventKind::NodeOfOtherVersion;
            let draft = EventDraft::new(kind, format!("store/{name}"), text).with("node", node);
            self.emit([draft.rate_limited()]);
        }
    }
}

fn named<'a>(
    stores: &'a mut BTreeMap<Name, SharedStore>,
    name: &str,
) -> Option<&'a mut SharedStore> {
    stores.get_mut(&name.parse::<Name>().ok()?)
}
