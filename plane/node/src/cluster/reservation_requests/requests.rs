//! Requests of a change to the leaders of shared stores.

use std::sync::Arc;
use std::time::Duration;

use suimon_contract::{ApiError, ErrorCode, HostConfig, Name};

use super::{ReservationRequest, ReservationResponse};
use crate::cluster::minimums::minimums;
use crate::cluster::shared_stores;
use crate::cluster::status::Reachability;
use crate::shared::Shared;

/// Maximum time that a change waits for a leader.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

impl Shared {
    /// Has leaders reserve the additional minimums of a change on shared stores. Returns a text per
    /// store whose minimums are pending although the change is made. Blocks at most
    /// [`RESPONSE_TIMEOUT`] per store.
    ///
    /// # Errors
    /// Fails if a leader rejects the minimums. Nothing was changed.
    pub(in crate::cluster) fn request_reservations(
        &self,
        from: &HostConfig,
        to: &HostConfig,
    ) -> Result<Vec<String>, ApiError> {
        let mut pending = Vec::new();
        let before = shared_stores(from);
        for (name, _) in shared_stores(to) {
            let sum = |config: &HostConfig| minimums(config, name).values().sum::<u64>();
            let iops = sum(to);
            if !before.contains_key(name) || iops <= sum(from) {
                continue;
            }
            match self.query_leader(name, iops) {
                Ok(ReservationResponse::Reserved) => {}
                Ok(ReservationResponse::Refused(promises)) => {
                    let text = format!(
                        "the leader of the store rejected these minimums: {promises}; lower \
                         minimums, or move disks to another store"
                    );
                    let error = ApiError::new(ErrorCode::Overcommitted, text);
                    return Err(error.with_resource(format!("store/{name}")));
                }
                Err(reason) => pending.push(format!(
                    "store {name}: minimums of {iops} IOPS are pending and not guaranteed, \
                     because {reason}. The former reservation stays in effect; the new one follows \
                     when the cluster grants it (`suimon cluster status`)."
                )),
            }
        }
        Ok(pending)
    }

    /// Withdraws the requests for a change that is not made.
    pub(in crate::cluster) fn withdraw_requests(&self, to: &HostConfig) {
        for name in shared_stores(to).into_keys() {
            self.cluster.inbox.request_reservation(name.clone(), None);
        }
    }

    fn query_leader(&self, store: &Name, iops: u64) -> Result<ReservationResponse, String> {
        match &self.cluster.view().reachability {
            Reachability::Up => {}
            Reachability::None => return Err("the host has not joined the cluster yet".to_owned()),
            Reachability::Unreachable(reason) | Reachability::Refused(reason) => {
                return Err(reason.clone());
            }
        }
        let request = ReservationRequest::new(self.plane.now(), iops);
        let slot = Arc::clone(&request.slot);
        self.cluster.inbox.request_reservation(store.clone(), Some(request));
        let verdict = slot.wait(RESPONSE_TIMEOUT);
        verdict.ok_or_else(|| {
            self.cluster.inbox.request_reservation(store.clone(), None);
            let view = self.cluster.view();
            view.missing_leader_reason(store)
        })
    }
}
