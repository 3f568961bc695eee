//! Notifications of the node, and limits of streams that follow them.

use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode};
use suimon_node::NodeListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::http::ErrorResponse;

/// Largest number of concurrent followers of the event log. Their connections last indefinitely and
/// must leave connections for other requests.
pub const EVENT_FOLLOWERS_MAX: usize = 128;

/// Sender of the node's notifications to streams and waiting requests.
pub struct NotificationSender {
    pub(crate) event_sequence: watch::Sender<u64>,
    pub(crate) operation_changes: watch::Sender<u64>,
    pub(crate) stopping: watch::Sender<bool>,
}

/// Receiver of the node's notifications.
#[derive(Clone)]
pub struct Notifications {
    /// Sequence number of the last event.
    pub event_sequence: watch::Receiver<u64>,
    /// Number of changes of all operations since the start of the daemon.
    pub operation_changes: watch::Receiver<u64>,
    /// True if the daemon is stopping: streams end.
    pub stopping: watch::Receiver<bool>,
    /// Permits of event followers.
    event_followers: Arc<Semaphore>,
}

impl NotificationSender {
    /// Returns a sender and its receiver.
    pub fn new() -> (Self, Notifications) {
        let (events, events_news) = watch::channel(0);
        let (operations, operations_news) = watch::channel(0);
        let (end_sender, ended_news) = watch::channel(false);
        let notifications = Notifications {
            event_sequence: events_news,
            operation_changes: operations_news,
            stopping: ended_news,
            event_followers: Arc::new(Semaphore::new(EVENT_FOLLOWERS_MAX)),
        };
        (
            Self { event_sequence: events, operation_changes: operations, stopping: end_sender },
            notifications,
        )
    }

    /// Signals the end of the daemon, with which all streams end.
    pub fn signal_end(&self) {
        self.stopping.send_replace(true);
    }
}

impl NodeListener for NotificationSender {
    fn handle_events(&self, sequence: u64) {
        self.event_sequence.send_replace(sequence);
    }

    fn handle_operation(&self, _id: u64) {
        self.operation_changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn handle_end(&self) {
        self.signal_end();
    }
}

impl Notifications {
    /// Acquires a permit for a follower of the event log.
    ///
    /// # Errors
    /// [`EVENT_FOLLOWERS_MAX`] followers exist already.
    pub(crate) fn acquire_event_follower(&self) -> Result<OwnedSemaphorePermit, ErrorResponse> {
        self.event_followers.clone().try_acquire_owned().map_err(|_| {
            let text = format!(
                "{EVENT_FOLLOWERS_MAX} clients already follow the events, the most possible; end \
                 one of them, or list the events"
            );
            ApiError::new(ErrorCode::Conflict, text).with_resource("event").into()
        })
    }

    /// Returns when the daemon stops.
    pub async fn wait_end(&mut self) {
        // The sender lives as long as the node.
        let _ = self.stopping.wait_for(|is_ended| *is_ended).await;
    }
}
