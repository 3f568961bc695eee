//! Watches of a key prefix that restart after failures.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::{EventType, WatchOptions, WatchResponse};
use suimon_ports::{
    ClusterEntry, ClusterObserver, ClusterStoreError, ClusterStoreErrorKind as Kind, ClusterWatch,
};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::errors::{convert_error, is_too_large, timeout_error};
use crate::members::Members;
use crate::view::{RESPONSE_BYTES_MAX, decode_entry, decode_revision, read_view};

/// Interval of progress requests on a watch without events.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Number of consecutive unanswered progress requests after which the next member is selected.
const UNANSWERED_MAX: u32 = 3;
/// Pause between the failure of a watch and its restart.
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) struct Watch(JoinHandle<()>);

impl Watch {
    pub(crate) const fn new(task: JoinHandle<()>) -> Self {
        Self(task)
    }
}

impl ClusterWatch for Watch {}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Position of one observer's watch.
struct Progress {
    prefix: String,
    /// Revision up to which the observer has received changes; `None` if it needs a snapshot.
    revision: Option<u64>,
}

/// Sends the observer a snapshot and then all changes of keys that begin with `prefix`. After an
/// error, reports the interruption and continues. Ends only when its task is aborted.
pub(crate) async fn watch(
    members: Arc<Members>,
    prefix: String,
    observer: Arc<dyn ClusterObserver>,
) {
    let mut progress = Progress { prefix, revision: None };
    loop {
        if let Err(error) = listen(&members, &mut progress, observer.as_ref()).await {
            observer.handle_interruption(&error);
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Sends a snapshot if the observer needs one, then forwards changes until an error occurs. Selects
/// the next member after an error.
async fn listen(
    members: &Members,
    progress: &mut Progress,
    observer: &dyn ClusterObserver,
) -> Result<(), ClusterStoreError> {
    let from = if let Some(revision) = progress.revision {
        revision
    } else {
        let view = read_view(members, &progress.prefix).await?;
        let revision = view.revision;
        observer.handle_snapshot(view);
        progress.revision = Some(revision);
        revision
    };
    let (client, member) = match members.client().await {
        Ok(client) => client,
        Err(error) => {
            let member = error.detail.split(": ").next().unwrap_or_default();
            members.switch_member(member);
            return Err(error);
        }
    };
    let start = i64::try_from(from).unwrap_or(i64::MAX).saturating_add(1);
    let options = WatchOptions::new().with_prefix().with_start_revision(start);
    let mut client = client.watch_client().max_decoding_message_size(RESPONSE_BYTES_MAX);
    let request = timeout(members.timeout(), client.watch(progress.prefix.as_str(), Some(options)));
    let to_error = |error| {
        members.switch_member(&member);
        error
    };
    let mut stream = request
        .await
        .map_err(|_| to_error(timeout_error(&member, false)))?
        .map_err(|error| to_error(convert_error(&member, &error, false)))?;
    let mut unanswered = 0;
    loop {
        match timeout(PROGRESS_INTERVAL, stream.message()).await {
            Ok(Ok(Some(answer))) => {
                unanswered = 0;
                members.record_reply();
                report(&answer, progress, observer)?;
            }
            Ok(Ok(None)) => return Err(to_error(timeout_error(&member, false))),
            Ok(Err(error)) => {
                if is_too_large(&error) {
                    // The same events would be received again. A snapshot is smaller: it has only
                    // the last value of each key.
                    progress.revision = None;
                }
                return Err(to_error(convert_error(&member, &error, false)));
            }
            Err(_) if unanswered < UNANSWERED_MAX => {
                unanswered += 1;
                stream
                    .request_progress()
                    .await
                    .map_err(|error| to_error(convert_error(&member, &error, false)))?;
            }
            Err(_) => return Err(to_error(timeout_error(&member, false))),
        }
    }
}

/// Forwards the events of one response to the observer, one call per revision.
///
/// # Errors
/// etcd has cancelled the watch.
fn report(
    answer: &WatchResponse,
    progress: &mut Progress,
    observer: &dyn ClusterObserver,
) -> Result<(), ClusterStoreError> {
    if answer.canceled() {
        // The missed changes were compacted: the observer needs a new snapshot.
        let is_compacted = answer.compact_revision() > 0;
        if is_compacted {
            progress.revision = None;
        }
        let reason = answer.cancel_reason();
        let is_denied = reason.contains("permission denied");
        let kind = if is_denied { Kind::NotAllowed } else { Kind::Unreachable };
        let cause = if is_compacted { "etcd has compacted the missed revisions" } else { reason };
        let detail = format!("a watch of etcd ended and is started again: {cause}");
        return Err(ClusterStoreError { kind, detail });
    }
    let mut batch_revision = 0;
    let mut changes: Vec<(String, Option<ClusterEntry>)> = Vec::new();
    for event in answer.events() {
        let Some(pair) = event.kv() else { continue };
        let now = decode_revision(pair.mod_revision());
        if now != batch_revision && !changes.is_empty() {
            observer.handle_changes(batch_revision, core::mem::take(&mut changes));
        }
        batch_revision = now;
        let entry = decode_entry(pair);
        let value = (event.event_type() == EventType::Put).then(|| entry.clone());
        changes.push((entry.key, value));
    }
    if !changes.is_empty() {
        observer.handle_changes(batch_revision, changes);
    }
    // A progress notification without events is not trusted: etcd may send it too early (etcd issue
    // 15220).
    progress.revision = progress.revision.map(|before| before.max(batch_revision));
    Ok(())
}
