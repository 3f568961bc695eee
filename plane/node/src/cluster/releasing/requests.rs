//! Release of stores by a change.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use suimon_contract::{ApiError, ErrorCode, Name};

use super::{RELEASE_POLL_INTERVAL, RELEASE_TIMEOUT, ReleaseRequest};
use crate::shared::Shared;

impl Shared {
    /// Gives back the reservations on stores, and removes the node's records of the stores. Blocks
    /// at most [`RELEASE_TIMEOUT`]. The stores are shared again if the change is not made.
    ///
    /// # Errors
    /// Fails if the reservations could not be given back in time.
    pub(in crate::cluster) fn release_stores(
        &self,
        stores: BTreeSet<Name>,
    ) -> Result<(), ApiError> {
        if stores.is_empty() {
            return Ok(());
        }
        let names = stores.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
        let releasing = ReleaseRequest { stores, is_done: Arc::default() };
        self.cluster.inbox.request_release(releasing.clone());
        let deadline = Instant::now() + RELEASE_TIMEOUT;
        while Instant::now() < deadline {
            if releasing.is_done() {
                return Ok(());
            }
            std::thread::sleep(RELEASE_POLL_INTERVAL);
        }
        self.cluster.inbox.request_release(ReleaseRequest::default());
        let text = format!(
            "the reservation of this host on store {names} could not be returned, because the \
             cluster does not respond; retry when it does (`suimon cluster status`), or use \
             `suimon store set STORE --shared=false --force`"
        );
        Err(ApiError::new(ErrorCode::HostError, text).with_resource("cluster"))
    }
}
