//! Requests with wrong credentials: delayed responses, counters and events.
//!
//! Credentials are compared at once. Correct ones are accepted at once, whatever else their peer
//! sent, since an administrator and an attacker may share an address. The response to wrong ones is
//! delayed by a timer, and their connection is closed afterwards.

mod table;

use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::{HeaderValue, header};
use axum::response::Response;
use suimon_node::{Node, RefusedAccess};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::notifications::Notifications;
use crate::server::ClientConnection;

pub(crate) use table::AuthenticatedListener;
use table::{FailureReport, FailureTable, peer_text};

/// Record of requests with wrong credentials at the TCP listeners of the daemon. Clones share it.
#[derive(Clone, Default)]
pub struct AccessFailures(Arc<Shared>);

#[derive(Default)]
struct Shared {
    table: Mutex<FailureTable>,
    /// Signals that wrong credentials were recorded.
    changed: Notify,
}

impl AccessFailures {
    /// Records a request with wrong credentials, delays the response, and returns it with
    /// `Connection: close`. The delay grows with the number of such requests of one peer.
    pub(crate) async fn refuse(
        &self,
        (listener, credentials): (AuthenticatedListener, &[u8]),
        client: Option<&ClientConnection>,
        mut response: Response,
    ) -> Response {
        let peer = client.and_then(ClientConnection::peer);
        let now = Instant::now().into_std();
        let delay = self.table().record_failure(now, (listener, peer), fingerprint(credentials));
        self.0.changed.notify_one();
        match client {
            Some(client) => client.delay(delay).await,
            None => tokio::time::sleep(delay).await,
        }
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }

    /// Returns the number of requests with wrong credentials since the start of the daemon, with
    /// the listener's section in the host file.
    pub(crate) fn totals(&self) -> [(&'static str, u64); 2] {
        let table = self.table();
        AuthenticatedListener::ALL.map(|listener| (listener.name(), table.total(listener)))
    }

    /// Writes events about wrong credentials until the daemon stops.
    pub async fn report(self, node: Arc<Node>, mut notifications: Notifications) {
        loop {
            let deadline = self.table().next_deadline().map(Instant::from_std);
            tokio::select! {
                () = self.0.changed.notified() => {}
                () = sleep_until(deadline) => {}
                () = notifications.wait_end() => break,
            }
            let due = self.table().poll_reports(Instant::now().into_std());
            report(&node, due).await;
        }
        let remaining = self.table().take_remaining_reports(Instant::now().into_std());
        report(&node, remaining).await;
    }

    fn table(&self) -> MutexGuard<'_, FailureTable> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a hash of wrong credentials. The credentials themselves are not kept, because they may
/// differ little from correct ones.
fn fingerprint(credentials: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(credentials);
    hasher.finish()
}

/// Returns at the deadline, and never if there is none.
async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn report(node: &Arc<Node>, reports: Vec<FailureReport>) {
    if reports.is_empty() {
        return;
    }
    let node = Arc::clone(node);
    let reported = tokio::task::spawn_blocking(move || {
        for FailureReport { listener, peer, count, duration: span } in reports {
            node.report_refused_access(&RefusedAccess {
                listener: listener.name(),
                peer: peer.map(peer_text),
                count,
                period_s: span.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX),
            });
        }
    });
    if let Err(error) = reported.await {
        tracing::error!(%error, "events about wrong credentials were not written");
    }
}
