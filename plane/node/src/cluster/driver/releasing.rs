//! Stores that this host stops sharing.

use suimon_cluster_qos::DurableState;
use suimon_contract::Name;

use super::{Driver, Link};
use crate::cluster::messages::Task;
use crate::cluster::records::save_durable_state;
use crate::cluster::releasing::{ReleasePhase, ReleaseRequest};
use crate::cluster::shared_stores;

impl Driver {
    /// Begins to give back this node's reservations on the stores of a request. An earlier request
    /// ends; its stores stay shared.
    pub(super) fn begin_release(&mut self, releasing: ReleaseRequest) {
        self.end_release();
        for name in &releasing.stores {
            if let Some(store) = self.stores.get_mut(name) {
                store.release = ReleasePhase::ReturningReservation;
            }
        }
        (self.releasing, self.sampled_at) = (Some(releasing), None);
    }

    /// Continues the release: removes the node's records of stores whose reservation is given back.
    /// Ends the release if the change that requested it is not in progress any more.
    pub(super) fn continue_release(&mut self) {
        let Some(releasing) = self.releasing.clone() else { return };
        if !self.is_change_in_progress() {
            self.end_release();
            return;
        }
        let is_up = matches!(self.link, Link::Up { .. });
        let mut is_withdrawn = true;
        for name in &releasing.stores {
            let Some(store) = self.stores.get_mut(name) else { continue };
            if store.release == ReleasePhase::ReturningReservation && store.has_no_reservation() {
                if is_up {
                    store.release = ReleasePhase::RemovingRecords;
                    self.tasks.push(self.session, Task::Withdraw { store: name.clone() });
                } else {
                    // Nothing is reserved. The records are removed when etcd responds.
                    store.release = ReleasePhase::RecordsRemoved;
                    self.withdrawals.insert(name.clone());
                }
            }
            is_withdrawn &= store.release == ReleasePhase::RecordsRemoved;
        }
        if is_withdrawn {
            releasing.finish();
        }
    }

    /// Ends the release, and resumes the use of the stores that the desired state still shares.
    fn end_release(&mut self) {
        let Some(releasing) = self.releasing.take() else { return };
        let desired = self.shared.desired();
        let shared = shared_stores(&desired.config);
        for name in releasing.stores.iter().filter(|name| shared.contains_key(name)) {
            if let Some(store) = self.stores.get_mut(name) {
                store.release = ReleasePhase::None;
            }
            self.withdrawals.remove(name);
        }
        self.sampled_at = None;
    }

    /// Requests the removal of records of stores that this host does not share.
    pub(super) fn withdraw_unshared_stores(&self) {
        for store in &self.withdrawals {
            self.tasks.push(self.session, Task::Withdraw { store: store.clone() });
        }
    }

    pub(super) fn handle_withdrawn(&mut self, name: &Name, is_withdrawn: bool) {
        if let Some(store) = self.stores.get_mut(name) {
            if store.release == ReleasePhase::RemovingRecords {
                store.release = if is_withdrawn {
                    ReleasePhase::RecordsRemoved
                } else {
                    ReleasePhase::ReturningReservation
                };
            }
            return;
        }
        if !is_withdrawn || !self.withdrawals.remove(name) {
            return;
        }
        let Some(cluster) = &self.config else { return };
        let state = self.shared.store.as_ref();
        if let Err(error) = save_durable_state(state, &cluster.name, name, &DurableState::default())
        {
            tracing::error!(store = %name, %error, "cannot save that a reservation was released");
        }
    }
}
