//! Removal of the node's records when it leaves the cluster.

use std::collections::BTreeSet;

use suimon_contract::Name;
use suimon_ports::{ClusterChange, ClusterCommitResult, ClusterCondition, ClusterStoreError};

use super::Session;
use crate::cluster::keys::{
    MEMBERS, NEXT_NODE, STORES, grant_key, grants_prefix, parse_grant_key, report_key,
};

impl Session {
    /// Removes the node from the cluster. Its reservations were given back before. The record of
    /// the member is removed after its reports and grants, so that the node can repeat a failed
    /// attempt. Identities are removed afterwards, because a member without them would accept an
    /// empty mount point as the directory of a store.
    pub(in crate::cluster) fn leave(&mut self, stores: &[Name]) -> Result<(), ClusterStoreError> {
        let number = self.member.id;
        // Nobody else removes the grants of a store without a leader.
        let grants = self.store.read(&self.key(&grants_prefix(number)))?.entries;
        let granted = grants.iter().filter_map(|entry| {
            let (_, store) = parse_grant_key(entry.key.strip_prefix(&self.root)?)?;
            store.parse::<Name>().ok()
        });
        let stores: BTreeSet<Name> = granted.chain(stores.iter().cloned()).collect();
        let keys =
            stores.iter().flat_map(|store| [report_key(store, number), grant_key(number, store)]);
        let changes: Vec<ClusterChange> =
            keys.map(|key| ClusterChange::Remove(self.key(&key))).collect();
        for chunk in changes.chunks(self.store.changes_max().max(1)) {
            self.store.commit(&[], chunk)?;
        }
        let without_members = self.conditions_without_members()?;
        let member = self.key(&format!("{MEMBERS}{}", self.node));
        self.store.commit(&[], &[ClusterChange::Remove(member)])?;
        let removed =
            without_members.map_or(Ok(()), |is_unused| self.remove_identities(&is_unused));
        if let Err(error) = removed {
            tracing::warn!(
                %error,
                "identities of stores stay in etcd; the last node that leaves the cluster removes \
                 them"
            );
        }
        self.end();
        Ok(())
    }

    /// Returns the conditions under which the cluster has no member once this node's record is
    /// removed; `None` if it has other members.
    fn conditions_without_members(
        &self,
    ) -> Result<Option<[ClusterCondition; 2]>, ClusterStoreError> {
        // A node that joins after this read changes the number of the next one.
        let next_key = self.key(NEXT_NODE);
        let next = self.store.read(&next_key)?.entries;
        let Some(next) = next.into_iter().find(|entry| entry.key == next_key) else {
            return Ok(None);
        };
        let own_key = self.key(&format!("{MEMBERS}{}", self.node));
        let members = self.store.read(&self.key(MEMBERS))?.entries;
        if members.iter().any(|member| member.key != own_key) {
            return Ok(None);
        }
        let is_unmodified = ClusterCondition::KeyUnmodifiedSince(next_key, next.modified_revision);
        Ok(Some([ClusterCondition::KeyAbsent(own_key), is_unmodified]))
    }

    /// Removes the identities of all stores. `is_unused`: conditions under which the cluster has no
    /// member. While it has members, one of them may share a store whose directory is not mounted,
    /// which is detected by the identity only, and which no key shows.
    fn remove_identities(&self, is_unused: &[ClusterCondition]) -> Result<(), ClusterStoreError> {
        let identities = self.store.read(&self.key(STORES))?.entries.into_iter();
        let changes: Vec<ClusterChange> =
            identities.map(|entry| ClusterChange::Remove(entry.key)).collect();
        let changes_max = self.store.changes_max().saturating_sub(is_unused.len()).max(1);
        for chunk in changes.chunks(changes_max) {
            if self.store.commit(is_unused, chunk)? == ClusterCommitResult::ConditionFailed {
                return Ok(());
            }
        }
        Ok(())
    }
}
