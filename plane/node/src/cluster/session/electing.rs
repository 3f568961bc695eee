//! Election of the node as the leader of a store.

use std::collections::BTreeSet;

use suimon_cluster_qos::{NodeGrant, NodeId, Term};
use suimon_contract::Name;
use suimon_ports::{ClusterChange, ClusterCondition, ClusterElectionResult, ClusterStoreError};

use super::Session;
use crate::cluster::elected::ElectedLeaderState;
use crate::cluster::encoding::decode_entry;
use crate::cluster::inbox::KeyObserver;
use crate::cluster::keys::{GRANTS, LEADERS, MEMBERS, MemberRecord, REPORTS, parse_grant_key};

impl Session {
    /// Takes part in the election of a store's leader. `None` if another node is elected.
    pub(in crate::cluster) fn elect(
        &mut self,
        store: &Name,
    ) -> Result<Option<ElectedLeaderState>, ClusterStoreError> {
        let key = self.key(&format!("{LEADERS}{store}"));
        let term = match self.store.campaign(&key, self.owner().as_bytes(), self.lease.as_ref())? {
            ClusterElectionResult::Elected(term) => Term(term),
            ClusterElectionResult::OtherLeader(owner, created) if self.is_earlier_start(&owner) => {
                let condition = [ClusterCondition::KeyCreatedAt(key.clone(), created)];
                self.store.commit(&condition, &[ClusterChange::Remove(key)])?;
                return Ok(None);
            }
            ClusterElectionResult::OtherLeader(..) => return Ok(None),
        };
        let view = self.store.read(&self.key(GRANTS))?;
        let records = view.entries.iter().filter_map(|entry| {
            let (node, grant_store) = parse_grant_key(entry.key.strip_prefix(&self.root)?)?;
            let grant = (grant_store == store.as_str())
                .then(|| decode_entry::<NodeGrant>(entry))
                .flatten()?;
            Some((node, grant))
        });
        let records: Vec<(NodeId, NodeGrant)> = records.collect();
        let left_nodes = self.left_nodes(&records)?;
        let observer = KeyObserver::new(&self.inbox, self.number, &self.root);
        let watch = self.store.watch(&self.key(&format!("{REPORTS}{store}/")), observer)?;
        self.led_stores.insert(store.clone(), (term, watch));
        let policies = self.policies()?;
        Ok(Some(ElectedLeaderState { term, recorded_grants: records, left_nodes, policies }))
    }

    /// Returns the nodes with a grant that are not members. Must be called after the grants were
    /// read: a node becomes a member before it has grants. Returns none while the number of a
    /// member cannot be read: that member may use its reservation.
    fn left_nodes(&self, grants: &[(NodeId, NodeGrant)]) -> Result<Vec<NodeId>, ClusterStoreError> {
        let members = self.store.read(&self.key(MEMBERS))?.entries;
        let numbers = members.iter().map(|entry| Some(decode_entry::<MemberRecord>(entry)?.id));
        let Some(members) = numbers.collect::<Option<BTreeSet<NodeId>>>() else {
            return Ok(Vec::new());
        };
        let nodes = grants.iter().map(|(node, _)| *node);
        Ok(nodes.filter(|node| !members.contains(node)).collect())
    }
}
