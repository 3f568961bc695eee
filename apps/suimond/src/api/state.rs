//! State shared by all handlers, and notification of streams.

use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode};
use suimon_node::{Node, NodeListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::access::AccessFailures;
use crate::api::failure::Failure;
use crate::console::Console;
use crate::lab::Lab;

/// Largest number of concurrent followers of the event log. Their connections last indefinitely and
/// must leave connections for other requests.
pub const EVENT_FOLLOWERS_MAX: usize = 128;

/// State available to every handler.
#[derive(Clone)]
pub struct ApiState {
    /// Node that the API controls.
    pub node: Arc<Node>,
    /// Notifications about events and operations of the node.
    pub notifications: Notifications,
    /// OpenAPI document as text.
    pub openapi: Arc<str>,
    /// Web console, if configured.
    pub console: Option<Arc<Console>>,
    /// Access to the lab of the host.
    pub lab: Arc<Lab>,
    /// Requests with wrong credentials.
    pub failures: AccessFailures,
}

impl ApiState {
    /// Runs a call of the node that may block on a thread for blocking calls.
    ///
    /// # Errors
    /// The error of the call; `internal` if it panicked.
    pub async fn call_blocking<T, E>(
        &self,
        call: impl FnOnce(&Node) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Failure>
    where
        T: Send + 'static,
        E: Into<Failure> + Send + 'static,
    {
        let node = self.node.clone();
        match tokio::task::spawn_blocking(move || call(&node)).await {
            Ok(result) => result.map_err(Into::into),
            Err(error) => {
                let text =
                    format!("the daemon failed to process the request: {error}; see its log");
                Err(ApiError::new(ErrorCode::Internal, text).into())
            }
        }
    }

    /// Runs an infallible call of the node that may block on a thread for blocking calls.
    ///
    /// # Errors
    /// `internal` if the call panicked.
    pub async fn read<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        self.call_blocking(move |node| Ok::<T, Failure>(call(node))).await
    }
}

/// Sender of the node's notifications to streams and waiting requests.
pub struct NotificationSender {
    events: watch::Sender<u64>,
    operations: watch::Sender<u64>,
    ended: watch::Sender<bool>,
}

/// Receiver of the node's notifications.
#[derive(Clone)]
pub struct Notifications {
    /// Sequence number of the last event.
    pub events: watch::Receiver<u64>,
    /// Number of changes of operations.
    pub operations: watch::Receiver<u64>,
    /// True if the daemon is stopping: streams end.
    pub ended: watch::Receiver<bool>,
    /// Semaphore that limits the clients that follow events.
    event_followers: Arc<Semaphore>,
}

impl NotificationSender {
    /// Returns a sender and its receiver.
    pub fn new() -> (Self, Notifications) {
        let (events, events_news) = watch::channel(0);
        let (operations, operations_news) = watch::channel(0);
        let (ended, ended_news) = watch::channel(false);
        let news = Notifications {
            events: events_news,
            operations: operations_news,
            ended: ended_news,
            event_followers: Arc::new(Semaphore::new(EVENT_FOLLOWERS_MAX)),
        };
        (Self { events, operations, ended }, news)
    }

    /// Ends all streams of events and operations.
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
    pub(super) fn event_follower(&self) -> Result<OwnedSemaphorePermit, Failure> {
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
        let _ = self.ended.wait_for(|ended| *ended).await;
    }
}
