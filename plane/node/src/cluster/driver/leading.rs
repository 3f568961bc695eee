//! Leadership of stores: election and its end.

use suimon_cluster_qos::{NodeGrant, NodeId, Term};
use suimon_contract::{EventKind, Name};
use suimon_quantity::Time;

use super::{Driver, ELECT, Link};
use crate::cluster::messages::Task;
use crate::events::EventDraft;

impl Driver {
    /// Requests the election of this node for stores without a leader.
    pub(super) fn start_elections(&mut self, now: Time) {
        if !matches!(self.link, Link::Up { .. }) || self.is_leaving {
            return;
        }
        let own_node = self.config.as_ref().map(|config| config.node.as_str());
        for (name, store) in &mut self.stores {
            if !store.may_be_candidate(now) {
                continue;
            }
            if let Some((node, term)) = &store.leader {
                // The key is from an earlier election of this node, which must be removed before a
                // new election.
                if Some(node.as_str()) == own_node {
                    store.next_election_at = now + ELECT;
                    let task = Task::Resign { store: name.clone(), term: *term };
                    self.tasks.push(self.session, task);
                }
            } else if store.takes_part() && store.capacity.is_some() {
                store.is_candidate = true;
                self.tasks.push(self.session, Task::Elect { store: name.clone() });
            }
        }
    }

    /// Begins the leadership of a store. `records`: grants of former terms; `left_nodes`: nodes
    /// among them that left the cluster while the store had no leader.
    pub(super) fn begin_leadership(
        &mut self,
        now: Time,
        name: &Name,
        term: Term,
        records: Vec<(NodeId, NodeGrant)>,
        left_nodes: Vec<NodeId>,
    ) {
        let Some(store) = self.stores.get_mut(name) else {
            self.tasks.push(self.session, Task::Resign { store: name.clone(), term });
            return;
        };
        (store.is_candidate, store.next_election_at) = (false, now + ELECT);
        let policies = self.policies.policies.values();
        let policies = policies.map(|(record, _)| (record.key, record.limits())).collect();
        if !store.begin_leadership(now, term, records, policies) {
            self.tasks.push(self.session, Task::Resign { store: name.clone(), term });
            return;
        }
        for node in left_nodes {
            store.remove_node(now, node);
        }
        let text = format!("This node was elected leader of store {name} in term {}.", term.0);
        let draft = EventDraft::new(EventKind::ClusterLeads, format!("store/{name}"), text);
        self.emit([draft.with("term", term.0)]);
    }

    pub(super) fn end_all_leaderships(&mut self, now: Time) {
        let lost: Vec<Name> = self
            .stores
            .values_mut()
            .filter_map(|store| store.end_leadership(now).then(|| store.name.clone()))
            .collect();
        lost.iter().for_each(|name| {
            self.report_leadership_lost(name, "this host is no longer a node of the cluster");
        });
    }

    pub(super) fn report_leadership_lost(&self, name: &Name, reason: &str) {
        let text = format!("This node stopped being the leader of store {name}: {reason}.");
        let draft = EventDraft::new(EventKind::ClusterLeadLost, format!("store/{name}"), text);
        self.emit([draft.with("reason", reason)]);
    }
}
