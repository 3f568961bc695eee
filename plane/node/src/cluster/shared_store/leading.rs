//! Leadership of a store: capacity in effect, and reports of its nodes.

use suimon_cluster_qos::{
    AllocatorAction, AllocatorEvent, NodeGrant, NodeId, PolicyKey, PolicyLimits,
    SharedStoreCapacity, Term,
};
use suimon_quantity::Time;

use super::SharedStore;
use crate::cluster::keys::NodeReport;

impl SharedStore {
    pub(in crate::cluster) fn leader_term(&self) -> Option<Term> {
        self.allocator.term()
    }

    /// Returns the total rate that the leader divides; `None` if this node is not the leader.
    pub(in crate::cluster) fn limit_iops(&self) -> Option<u64> {
        self.allocator.store_limit_iops()
    }

    pub(in crate::cluster) fn handle_allocator_event(&mut self, now: Time, event: AllocatorEvent) {
        let actions = self.allocator.handle(now, event);
        self.leads.extend(actions);
    }

    /// Makes this node the leader. Returns false if that is impossible.
    pub(in crate::cluster) fn begin_leadership(
        &mut self,
        now: Time,
        term: Term,
        records: Vec<(NodeId, NodeGrant)>,
        policies: Vec<(PolicyKey, PolicyLimits)>,
    ) -> bool {
        let Some(capability) = self.capacity else { return false };
        self.reported_capacities.clear();
        self.reports.clear();
        self.other_normalization.clear();
        self.capacity_in_effect = Some(capability);
        let event = AllocatorEvent::Elected { term, capacity: capability, records, policies };
        self.handle_allocator_event(now, event);
        self.allocator.term() == Some(term)
    }

    /// Ends the leadership of this node. Returns true if the node was the leader.
    pub(in crate::cluster) fn end_leadership(&mut self, now: Time) -> bool {
        let led = self.allocator.term().is_some();
        self.handle_allocator_event(now, AllocatorEvent::Deposed);
        led
    }

    /// Processes a node's report as the leader. `created`: creation revision of its key. A report
    /// with another `normalization_bytes` is ignored; the value is returned if it has not been
    /// reported yet.
    pub(in crate::cluster) fn handle_report(
        &mut self,
        now: Time,
        node_report: NodeReport,
        created: u64,
    ) -> Option<(NodeId, u64)> {
        let node = node_report.report.node;
        if self.reports.get(&node).is_some_and(|before| *before != created) {
            // The node had withdrawn from the store, and shares it again.
            self.remove_node(now, node);
        }
        self.reports.insert(node, created);
        if node_report.normalization_bytes != self.normalization_bytes {
            let previous = self.other_normalization.insert(node, node_report.normalization_bytes);
            let is_new = previous != Some(node_report.normalization_bytes);
            return is_new.then_some((node, node_report.normalization_bytes));
        }
        self.other_normalization.remove(&node);
        match node_report.capacity_iops {
            Some(iops) => self.reported_capacities.insert(node, iops),
            None => self.reported_capacities.remove(&node),
        };
        self.update_capacity(now);
        self.handle_allocator_event(now, AllocatorEvent::Reported { report: node_report.report });
        None
    }

    /// Updates the capacity that the leader uses: the lowest that any node knows.
    pub(in crate::cluster) fn update_capacity(&mut self, now: Time) {
        let Some(capacity) = self.capacity.filter(|_| self.allocator.term().is_some()) else {
            return;
        };
        let lowest_iops =
            self.reported_capacities.values().copied().fold(capacity.iops(), u64::min);
        let capability = match capacity {
            SharedStoreCapacity::Declared(_) => SharedStoreCapacity::Declared(lowest_iops),
            SharedStoreCapacity::Measured(_) => SharedStoreCapacity::Measured(lowest_iops),
        };
        if self.capacity_in_effect != Some(capability) {
            self.capacity_in_effect = Some(capability);
            self.handle_allocator_event(now, AllocatorEvent::CapacitySet { capacity: capability });
        }
    }

    /// Processes the removal of a node from the cluster, or its withdrawal from the store.
    pub(in crate::cluster) fn remove_node(&mut self, now: Time, node: NodeId) {
        self.reported_capacities.remove(&node);
        self.reports.remove(&node);
        self.other_normalization.remove(&node);
        if self.allocator.term().is_some() {
            self.handle_allocator_event(now, AllocatorEvent::NodeGone { node });
        }
    }

    /// Returns the next pending action of the allocator.
    pub(in crate::cluster) fn poll_allocator(&mut self) -> Option<AllocatorAction> {
        self.leads.pop_front()
    }
}
