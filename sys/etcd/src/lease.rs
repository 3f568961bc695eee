//! etcd leases, renewed by a background task.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use etcd_client::Error;
use suimon_ports::{
    ClusterLease, ClusterLeaseId, ClusterStoreError, ClusterStoreErrorKind as Kind,
};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::members::Members;

pub(crate) struct Lease {
    id: i64,
    /// Local time at which the lease expires unless it is renewed; `None` if etcd has reported that
    /// it expired.
    deadline: Arc<Mutex<Option<Instant>>>,
    keeper: JoinHandle<()>,
    members: Arc<Members>,
    runtime: Handle,
}

impl Lease {
    pub(crate) fn acquire(
        runtime: &Handle,
        members: Arc<Members>,
        span: Duration,
    ) -> Result<Self, ClusterStoreError> {
        let seconds = i64::try_from(span.as_secs().max(1)).unwrap_or(i64::MAX);
        let requested_at = Instant::now();
        let answer = runtime
            .block_on(members.request(true, |mut client| async move {
                client.lease_grant(seconds, None).await
            }))?;
        // etcd may grant a longer lease than requested, but never a shorter one.
        let span = Duration::from_secs(u64::try_from(answer.ttl()).unwrap_or_default());
        let deadline = Arc::new(Mutex::new(Some(requested_at + span)));
        let id = answer.id();
        let keeper = keep_alive(Arc::clone(&members), id, span, Arc::clone(&deadline));
        let keeper = runtime.spawn(keeper);
        Ok(Self { id, deadline, keeper, members, runtime: runtime.clone() })
    }
}

/// Renews a lease every third of its duration, until etcd reports that it has expired.
async fn keep_alive(
    members: Arc<Members>,
    id: i64,
    span: Duration,
    deadline: Arc<Mutex<Option<Instant>>>,
) {
    let pause = span / 3;
    loop {
        tokio::time::sleep(pause).await;
        let requested_at = Instant::now();
        let question = members.request(false, |mut client| async move {
            let (mut keeper, mut answers) = client.lease_keep_alive(id).await?;
            keeper.keep_alive().await?;
            answers.message().await?.ok_or_else(|| Error::LeaseKeepAliveError("no reply".into()))
        });
        let answer = timeout(pause.max(members.timeout()), question).await;
        let mut deadline = deadline.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(Ok(answer)) if answer.ttl() > 0 => *deadline = Some(requested_at + span),
            // The lease has expired at etcd.
            Ok(Ok(_)) => *deadline = None,
            Ok(Err(error)) if error.kind == Kind::LeaseEnded => *deadline = None,
            Ok(Err(_)) | Err(_) => {}
        }
        if deadline.is_none() {
            return;
        }
    }
}

impl ClusterLease for Lease {
    fn id(&self) -> ClusterLeaseId {
        ClusterLeaseId(self.id)
    }

    fn remaining(&self) -> Duration {
        let deadline = *self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        deadline
            .map_or(Duration::ZERO, |deadline| deadline.saturating_duration_since(Instant::now()))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.keeper.abort();
        let (members, id) = (Arc::clone(&self.members), self.id);
        // If this request is lost, the lease expires by itself.
        self.runtime.spawn(async move {
            let _ = members
                .request(true, |mut client| async move { client.lease_revoke(id).await })
                .await;
        });
    }
}
