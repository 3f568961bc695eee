//! Membership: joining, rejection, leaving, and reachability of etcd.

use std::sync::Arc;
use std::time::Duration;

use suimon_contract::EventKind;
use suimon_ports::ClusterKvStore;
use suimon_quantity::Time;

use super::{Driver, Link, RETRY};
use crate::cluster::keys::MemberRecord;
use crate::cluster::messages::Task;
use crate::cluster::shared_store::SharedStore;
use crate::cluster::status::Reachability;
use crate::events::EventDraft;

/// Time without a response after which etcd counts as unreachable.
const SILENT: Duration = Duration::from_secs(5);

impl Driver {
    pub(super) fn join(&mut self, now: Time, store: Arc<dyn ClusterKvStore>, member: MemberRecord) {
        let Some(config) = self.config.clone() else { return };
        (self.node, self.incarnation) = (member.id, member.incarnation);
        for shared_store in self.stores.values_mut() {
            shared_store.begin_membership(now, member.id, member.incarnation);
        }
        let text = format!(
            "The host joined cluster {1} as node {0}, number {2}.",
            config.node, config.name, member.id.0
        );
        let joined = EventDraft::new(EventKind::ClusterJoined, "cluster", text)
            .with("cluster", &config.name)
            .with("node", &config.node)
            .with("number", member.id.0);
        self.members.insert(config.node.to_string(), member);
        self.link = Link::Up { store };
        (self.refused, self.sampled_at, self.tended) = (None, None, now);
        self.emit([joined]);
    }

    /// Handles a failed attempt to begin a session with the cluster, and reports the first failure
    /// of a series. `is_refused`: the cluster responds and refuses this host; otherwise etcd does
    /// not respond.
    pub(super) fn report_session_failure(&mut self, is_refused: bool, detail: &str) {
        let is_reported = self.refused.is_some() || (!is_refused && !self.is_reachable);
        self.is_reachable = is_refused;
        self.refused = is_refused.then(|| detail.to_owned());
        self.shared.cluster.view().reachability = if is_refused {
            Reachability::Refused(detail.to_owned())
        } else {
            Reachability::Unreachable(detail.to_owned())
        };
        if !is_reported {
            let kind =
                if is_refused { EventKind::ClusterRefused } else { EventKind::ClusterUnreachable };
            let remedy = if is_refused {
                "Check `node`, `user`, `password_file` and the client certificate in `[cluster]`"
            } else {
                "Check `endpoints` in `[cluster]`, etcd and the network"
            };
            let text = format!("The host cannot join its cluster and retries. {remedy}. {detail}");
            self.emit([EventDraft::new(kind, "cluster", text).with("reason", detail)]);
        }
    }

    /// Emits events when etcd becomes reachable or unreachable.
    pub(super) fn report_reachability(&mut self) {
        let Link::Up { store } = &self.link else { return };
        let age = store.time_since_response();
        let is_reachable = age.is_some_and(|age| age < SILENT);
        let reach = if is_reachable {
            Reachability::Up
        } else {
            Reachability::Unreachable("etcd does not respond".to_owned())
        };
        self.shared.cluster.view().reachability = reach;
        if is_reachable == self.is_reachable {
            return;
        }
        self.is_reachable = is_reachable;
        let draft = if is_reachable {
            let text = "The etcd of the cluster responds again.";
            EventDraft::new(EventKind::ClusterReachable, "cluster", text)
        } else {
            let text = "The etcd of the cluster does not respond: leases of this host expire, its \
                        reservations stay. Check whether etcd's members run and reach each \
                        other.";
            EventDraft::new(EventKind::ClusterUnreachable, "cluster", text)
        };
        self.emit([draft]);
    }

    /// Leaves the cluster once all reservations are given back.
    pub(super) fn leave_if_reservations_returned(&mut self) {
        let is_up = matches!(self.link, Link::Up { .. });
        if self.is_leaving && is_up && self.stores.values().all(SharedStore::has_no_reservation) {
            let stores = self.stores.keys().cloned().collect();
            self.tasks.push(self.session, Task::Leave { stores });
            self.link = Link::Trying { at: None };
        }
    }

    pub(super) fn end_leaving(&mut self, failure: Option<String>) {
        if let Some(failure) = failure {
            tracing::warn!(failure, "cannot remove this host's record from the cluster");
            self.is_leaving = false;
            self.link = Link::Trying { at: Some(self.now()) };
            return;
        }
        self.remove_heartbeats();
        // The session's record is removed: its reports and results have no effect any more.
        self.begin_session();
        self.tasks.push(self.session, Task::EndSession);
        (self.is_leaving, self.has_left) = (false, true);
        self.link = Link::Trying { at: Some(self.now() + RETRY) };
        // The caller of `Shared::prepare_cluster_change` now removes `[cluster]`.
        self.shared.cluster.view().has_left = true;
    }

    /// Emits the event of a committed change that removes the host from its cluster, if it has one.
    pub(super) fn report_leaving(&self) {
        let Some(config) = &self.config else { return };
        let left =
            format!("The host left cluster {}, where it was node {}.", config.name, config.node);
        let text = if self.has_left {
            format!("{left} Its reservations on shared stores were released.")
        } else {
            format!(
                "{left} Its reservations on shared stores could not be released. Run `suimon \
                 cluster remove {}` on another node.",
                config.node
            )
        };
        let draft = EventDraft::new(EventKind::ClusterLeft, "cluster", text)
            .with("cluster", &config.name)
            .with("node", &config.node)
            .with("released", self.has_left);
        self.emit([draft]);
    }

    /// Returns true if the host may join its cluster. A host that has left joins again once it is
    /// certain that the change that removes `[cluster]` is not made: it failed or was cancelled.
    pub(super) fn may_join(&self) -> bool {
        // In this order: the desired state is stored before the change ends.
        let has_finished_change = !self.has_left || !self.is_change_in_progress();
        has_finished_change
            && (!self.has_left || self.shared.desired().config.cluster == self.config)
    }

    /// Returns true while a change of this host is being made.
    pub(super) fn is_change_in_progress(&self) -> bool {
        self.shared.cluster.is_changing() || self.shared.operations.is_busy()
    }
}
