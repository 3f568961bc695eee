//! Answers that go on: one JSON object per line (NDJSON).
//!
//! A reader is never waited for with anything in hand: the next lines are made
//! when the connection has room for them.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::watch;

use crate::api::state::News;

/// An empty line is sent after this long without another, so that a reader that
/// is gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What there is to say now.
pub(super) enum Next<T> {
    /// These lines, maybe none, and more to come.
    More(Vec<T>),
    /// These lines, and then nothing.
    Last(Vec<T>),
}

/// Something to follow.
pub(super) trait Lines: Send + 'static {
    /// What a line holds.
    type Line: Serialize + Send;

    /// The lines that are new since the last call.
    fn next_lines(&mut self) -> Next<Self::Line>;

    /// What to wait for before asking again.
    fn watched(news: &mut News) -> &mut watch::Receiver<u64>;
}

/// The answer that follows `source` until it or the daemon ends.
pub(super) fn lines<L: Lines>(source: L, news: News) -> Response {
    let follower = Follower { source, news, ending: false, last_said: false };
    let stream = futures_util::stream::unfold(follower, |mut follower| async move {
        let bytes = follower.next_bytes().await?;
        Some((Ok::<Bytes, Infallible>(bytes), follower))
    });
    let content_type = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (content_type, Body::from_stream(stream)).into_response()
}

struct Follower<L> {
    source: L,
    news: News,
    /// The daemon stops: what there is to say now is the last.
    ending: bool,
    last_said: bool,
}

impl<L: Lines> Follower<L> {
    async fn next_bytes(&mut self) -> Option<Bytes> {
        loop {
            if self.last_said {
                return None;
            }
            // Marked before the source is asked, so that what comes meanwhile
            // counts as new.
            L::watched(&mut self.news).borrow_and_update();
            self.last_said = self.ending;
            let lines = match self.source.next_lines() {
                Next::More(lines) => lines,
                Next::Last(lines) => {
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
            let mut ended = self.news.ended.clone();
            tokio::select! {
                changed = L::watched(&mut self.news).changed() => changed.ok()?,
                _ = ended.wait_for(|ended| *ended) => self.ending = true,
                () = tokio::time::sleep(KEEP_ALIVE) => return Some(Bytes::from_static(b"\n")),
            }
        }
    }
}

fn written<T: Serialize>(lines: &[T]) -> Bytes {
    let mut bytes = Vec::new();
    for line in lines {
        // The types of the contract can always be written.
        if serde_json::to_writer(&mut bytes, line).is_ok() {
            bytes.push(b'\n');
        }
    }
    bytes.into()
}
