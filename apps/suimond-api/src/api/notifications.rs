//! Notifications of the node, and limits of streams that follow them.

use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode};
use suimon_node::NodeListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::api::failure::ErrorResponse;

/// Largest number of concurrent followers of the event log. Their connections last indefinitely and
/// must leave connections for other requests.
pub const EVENT_FOLLOWERS_MAX: usize = 128;

/// Sender of the node's notifications to streams and waiting requests.
pub struct NotificationSender {
    pub(crate) events: watch::Sender<u64>,
    pub(crate) operations: watch::Sender<u64>,
    pub(crate) ended: watch::Sender<bool>,
}

/// Receiver of the node's notifications.
#[derive(Clone)]
pub struct Notifications {
    /// Sequence number of the last event.
    pub events: watch::Receiver<u64>,
    /// Number of changes of all operations since the start of the daemon.
    pub operations: watch::Receiver<u64>,
    /// True if the daemon is stopping: streams end.
    pub ended: watch::Receiver<bool>,
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
            events: events_news,
            operations: operations_news,
            ended: ended_news,
            event_followers: Arc::new(Semaphore::new(EVENT_FOLLOWERS_MAX)),
        };
        (Self { events, operations, ended: end_sender }, notifications)
    }

    /// Signals the end of the daemon, with which all streams end.
    pub fn end(&self) {
        self.ended.send_replace(true);
    }
}

impl NodeListener for NotificationSender {
    fn handle_events(&self, sequence: u64) {
        self.events.send_replace(sequence);
    }

    fn handle_operation(&self, _id: u64) {
        self.operations.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn handle_end(&self) {
        self.end();
    }
}

impl Notifications {
    /// Acquires a permit for a follower of the event log.
    ///
    /// # Errors
    /// [`EVENT_FOLLOWERS_MAX`] followers exist already.
    pub(super) fn event_follower(&self) -> Result<OwnedSemaphorePermit, ErrorResponse> {
        self.event_followers.clone().try_acquire_owned().map_err(|_| {
            let text = format!(
                "{EVENT_FOLLOWERS_MAX} clients already follow the events, the most possible; end \
                 one of them, or list the events"
            );
            ApiError::new(ErrorCode::Conflict, text).about("event").into()
        })
    }

    /// Returns when the daemon stops.
    pub async fn wait_end(&mut self) {
        // The sender lives as long as the node.
        let _ = self.ended.wait_for(|is_ended| *is_ended).await;
    }
}
