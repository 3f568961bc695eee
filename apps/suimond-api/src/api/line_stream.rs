//! Streaming responses with one JSON object per line (NDJSON).
//!
//! Lines are generated only when the connection has room for them, so a slow reader causes no
//! buffering.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use suimon_contract::to_json;
use tokio::sync::watch;

use crate::notifications::Notifications;

/// Idle time after which an empty line is sent to detect a closed connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Lines available from a source.
pub(super) enum NextLines<T> {
    /// Available lines, possibly none; more will follow.
    More(Vec<T>),
    /// Last lines of the stream.
    Last(Vec<T>),
}

/// Source of a stream of lines.
pub(super) trait LineSource: Send + 'static {
    /// Type serialized in each line.
    type Line: Serialize + Send;

    /// Returns the lines that are new since the last call.
    fn next_lines(&mut self) -> NextLines<Self::Line>;

    /// Returns the receiver that signals new lines.
    fn notification_receiver(notifications: &mut Notifications) -> &mut watch::Receiver<u64>;
}

/// Returns a streaming response that ends with `source` or with the daemon.
pub(super) fn stream_response<L: LineSource>(source: L, notifications: Notifications) -> Response {
    let follower = Follower { source, notifications, ending: false, last_said: false };
    let stream = futures_util::stream::unfold(follower, |mut follower| async move {
        let bytes = follower.next_bytes().await?;
        Some((Ok::<Bytes, Infallible>(bytes), follower))
    });
    let content_type = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (content_type, Body::from_stream(stream)).into_response()
}

struct Follower<L> {
    source: L,
    notifications: Notifications,
    /// True if the daemon is stopping: the currently available lines are the last.
    ending: bool,
    last_said: bool,
}

impl<L: LineSource> Follower<L> {
    async fn next_bytes(&mut self) -> Option<Bytes> {
        loop {
            if self.last_said {
                return None;
            }
            // Notifications are marked as seen before the query, so that a change during the query
            // counts as new.
            L::notification_receiver(&mut self.notifications).borrow_and_update();
            self.last_said = self.ending;
            let lines = match self.source.next_lines() {
                NextLines::More(lines) => lines,
                NextLines::Last(lines) => {
                    self.last_said = true;
                    lines
                }
            };
            if !lines.is_empty() {
                return Some(written(&lines));
            }
            if self.last_said {
                return None;
            }
            let mut end_receiver = self.notifications.stopping.clone();
            tokio::select! {
                changed = L::notification_receiver(&mut self.notifications).changed() => changed.ok()?,
                _ = end_receiver.wait_for(|end_receiver| *end_receiver) => self.ending = true,
                () = tokio::time::sleep(KEEP_ALIVE) => return Some(Bytes::from_static(b"\n")),
            }
        }
    }
}

fn written<T: Serialize>(lines: &[T]) -> Bytes {
    let mut bytes = Vec::new();
    for line in lines {
        // Serialization cannot fail: all lines are types of the contract.
        if let Ok(json) = to_json(line) {
            bytes.extend(json);
            bytes.push(b'\n');
        }
    }
    bytes.into()
}
