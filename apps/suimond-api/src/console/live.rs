//! Live updates of the page: responses of the REST API, sent as server-sent events when they change
//! (HTML Living Standard, section 9.2).

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use suimon_contract::{ApiError, ErrorCode, Event, EventFilter};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};
use tower::ServiceExt;

use super::access_check;
use crate::console::state::ConsoleState;
use crate::http::{ErrorResponse, QueryParameters};
use crate::notifications::Notifications;

/// Interval at which the data that a page shows is queried.
const PERIOD: Duration = Duration::from_secs(1);
/// Idle time after which an empty comment of the event stream is sent, so that the connection stays
/// open.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const TOPICS_MAX: usize = 16;
/// Time limit for the response of an endpoint to the query for one topic.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest size of a response in bytes. A topic with a larger one fails.
const RESPONSE_BYTES_MAX: usize = 4 << 20;
/// Largest number of log events in one part of the stream.
const EVENTS_MAX: usize = 16;
/// Largest number of parts with log events between two queries of the topics.
const EVENT_PARTS_MAX: usize = 16;

/// Topic of the event log, of which each event is sent once.
const EVENTS: &str = "events";

/// Endpoints that can be topics: they respond immediately with their complete content.
const LISTS: &[&str] = &[
    "cluster",
    "cluster/flows",
    "lab",
    "lab/runs",
    "operations",
    "power",
    "qos/flows",
    "queues",
    "top",
    "workers",
];
/// Endpoints that respond with a list, and below `/NAME` with one object.
const NAMED: &[&str] = &[
    "disks",
    "nics",
    "nodes",
    "operations",
    "pfs",
    "qos-policies",
    "sriov",
    "stores",
    "switches",
    "teams",
    "uplinks",
    "vmq",
    "vms",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveParameters {
    /// Comma-separated paths relative to `/1.0/`.
    topics: String,
}

/// Returns true if the topic is an endpoint of [`LISTS`] or [`NAMED`], or the event log.
fn is_topic(topic: &str) -> bool {
    let is_name = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
    };
    LISTS.contains(&topic)
        || NAMED.contains(&topic)
        || topic == EVENTS
        || topic
            .split_once('/')
            .is_some_and(|(topic_kind, name)| NAMED.contains(&topic_kind) && is_name(name))
}

/// Follows topics until the session or the daemon ends.
pub(super) async fn follow(
    State(state): State<ConsoleState>,
    QueryParameters(parameters): QueryParameters<LiveParameters>,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let topics: Vec<String> = parameters.topics.split(',').map(str::to_owned).collect();
    if topics.len() > TOPICS_MAX {
        let text = format!("the request has {} topics; the limit is {TOPICS_MAX}", topics.len());
        return Err(ApiError::new(ErrorCode::InvalidValue, text).with_field("topics").into());
    }
    if let Some(topic) = topics.iter().find(|topic| !is_topic(topic)) {
        let text = format!(
            "`{topic}` is not a topic; the topics are {EVENTS}, {}, {}, and one of these with a \
             name",
            LISTS.join(", "),
            NAMED.join(", ")
        );
        return Err(ApiError::new(ErrorCode::InvalidValue, text).with_field("topics").into());
    }
    let permit = state.console.live_permit()?;
    let session = access_check::find_cookie(&headers, &state.console.cookie_name())
        .unwrap_or_default()
        .to_owned();
    let follower = Follower::new(state, session, topics, permit);
    let stream = futures_util::stream::unfold(follower, |mut follower| async move {
        let text = follower.next_text().await?;
        Some((Ok::<Bytes, Infallible>(text.into()), follower))
    });
    let content_type = [(header::CONTENT_TYPE, "text/event-stream")];
    Ok((content_type, Body::from_stream(stream)).into_response())
}

/// Response to a query, without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ResponseDigest {
    status: StatusCode,
    length: usize,
    /// Hash of the body with the random key of the stream.
    hash: u64,
}

struct Follower {
    state: ConsoleState,
    notifications: Notifications,
    session: String,
    topics: Vec<String>,
    /// Topics that are to be queried before the next wait.
    remaining: VecDeque<String>,
    /// Number of parts with log events that may be sent before the remaining topics.
    event_parts: usize,
    /// Last response that was sent for each topic.
    sent: BTreeMap<String, ResponseDigest>,
    hasher: RandomState,
    ticks: Interval,
    /// Sequence number of the last log event seen, if events are followed.
    seen: Option<u64>,
    last_sent: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Follower {
    fn new(
        state: ConsoleState,
        session: String,
        mut topics: Vec<String>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let last = state.api.node.last_events(0, &EventFilter::default()).last_examined;
        let last_seen = topics.iter().any(|topic| topic == EVENTS).then_some(last);
        topics.retain(|topic| topic != EVENTS);
        let notifications = state.api.notifications.clone();
        Self {
            state,
            notifications,
            session,
            topics,
            remaining: VecDeque::new(),
            event_parts: 0,
            sent: BTreeMap::new(),
            hasher: RandomState::new(),
            ticks,
            seen: last_seen,
            last_sent: Instant::now(),
            _permit: permit,
        }
    }

    /// Waits for changes and returns the next part of the event stream: some log events or one
    /// topic, so that a stream holds one response at a time. `None` when the session or the daemon
    /// ends.
    async fn next_text(&mut self) -> Option<String> {
        loop {
            let has_rest = self.event_parts > 0 || !self.remaining.is_empty();
            if !has_rest {
                self.wait().await?;
            }
            let has_ended = *self.notifications.stopping.borrow();
            if has_ended
                || !self
                    .state
                    .console
                    .logins()
                    .is_valid_session_cookie(Instant::now(), &self.session)
            {
                return None;
            }
            if !has_rest {
                self.event_parts = EVENT_PARTS_MAX;
                self.remaining = self.topics.iter().cloned().collect();
                if self.last_sent.elapsed() >= KEEP_ALIVE {
                    self.last_sent = Instant::now();
                    return Some(":\n\n".to_owned());
                }
            }
            let text = if self.event_parts > 0 {
                self.new_events()
            } else if let Some(topic) = self.remaining.pop_front() {
                self.new_answer(&topic).await
            } else {
                continue;
            };
            if !text.is_empty() {
                self.last_sent = Instant::now();
                return Some(text);
            }
        }
    }

    /// Waits until the topics are to be queried again; `None` when the daemon ends.
    async fn wait(&mut self) -> Option<()> {
        let mut end_receiver = self.notifications.stopping.clone();
        tokio::select! {
            _ = self.ticks.tick() => Some(()),
            changed = self.notifications.event_sequence.changed(), if self.seen.is_some() => changed.ok(),
            _ = end_receiver.wait_for(|has_ended| *has_ended) => None,
        }
    }

    fn new_events(&mut self) -> String {
        let Some(last_seen) = &mut self.seen else {
            self.event_parts = 0;
            return String::new();
        };
        let page = self.state.api.node.events(*last_seen, EVENTS_MAX, &EventFilter::default());
        *last_seen = page.last_examined;
        let is_last = page.events.len() < EVENTS_MAX;
        self.event_parts = if is_last { 0 } else { self.event_parts.saturating_sub(1) };
        let events = page.events.into_iter().map(Event::with_new_names);
        let lines = events.filter_map(|event| serde_json::to_string(&event).ok());
        lines.map(|line| event(EVENTS, &line)).collect()
    }

    /// Queries a topic and returns its server-sent event; empty if the response is the same as
    /// before.
    async fn new_answer(&mut self, topic: &str) -> String {
        let (status, body) = self.answer(topic).await;
        let hash = self.hasher.hash_one(&body);
        let digest = ResponseDigest { status, length: body.len(), hash };
        if self.sent.insert(topic.to_owned(), digest) == Some(digest) {
            return String::new();
        }
        let text = String::from_utf8_lossy(&body);
        if status == StatusCode::OK {
            // Line breaks in JSON occur only between tokens, so replacing them does not change the
            // value.
            return event(topic, &text.replace(['\r', '\n'], " "));
        }
        let error: Value = serde_json::from_str(&text).unwrap_or_default();
        event(
            "failure",
            &json!({ "topic": topic, "status": status.as_u16(), "error": error }).to_string(),
        )
    }

    async fn answer(&self, topic: &str) -> (StatusCode, Bytes) {
        let request = Request::get(format!("/1.0/{topic}")).body(Body::empty());
        let Ok(request) = request else { return (StatusCode::BAD_REQUEST, Bytes::new()) };
        let answered = async {
            let Ok(answer) = self.state.endpoints.clone().oneshot(request).await;
            complete(topic, answer).await
        };
        timeout(RESPONSE_TIMEOUT, answered)
            .await
            .unwrap_or((StatusCode::GATEWAY_TIMEOUT, Bytes::new()))
    }
}

/// Returns status and body of a response, or an error if the body has more than
/// [`RESPONSE_BYTES_MAX`] or is incomplete.
async fn complete(topic: &str, response: Response) -> (StatusCode, Bytes) {
    let (parts, body) = response.into_parts();
    match to_bytes(body, RESPONSE_BYTES_MAX).await {
        Ok(body) => (parts.status, body),
        Err(error) => {
            let text = format!(
                "the response of `GET /1.0/{topic}` is incomplete, or exceeds {} MiB, the most \
                 that the console shows; use the command of the same list, or the REST API: {error}",
                RESPONSE_BYTES_MAX >> 20
            );
            let error = ErrorResponse::from(ApiError::new(ErrorCode::HostError, text));
            let body = serde_json::to_vec(&error.into_body()).unwrap_or_default();
            (StatusCode::INTERNAL_SERVER_ERROR, body.into())
        }
    }
}

fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use suimon_contract::ErrorBody;

    use super::*;

    /// An empty body with status 200 would be an update without data.
    #[tokio::test]
    async fn a_response_beyond_the_limit_is_an_error() {
        let response = |bytes: usize| Response::new(Body::from(vec![b' '; bytes]));
        let (status, body) = complete("operations", response(RESPONSE_BYTES_MAX)).await;
        assert_eq!((status, body.len()), (StatusCode::OK, RESPONSE_BYTES_MAX));
        let (status, body) = complete("operations", response(RESPONSE_BYTES_MAX + 1)).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        let error: ErrorBody = serde_json::from_slice(&body).unwrap();
        assert_eq!(error.errors[0].code, ErrorCode::HostError);
        assert!(error.errors[0].message.contains("/1.0/operations"), "{error:?}");
    }

    #[test]
    fn only_endpoints_that_respond_immediately_are_topics() {
        for topic in ["top", "events", "qos/flows", "vms", "vms/web-1", "vmq/u.0", "operations/7"] {
            assert!(is_topic(topic), "{topic}");
        }
        for topic in [
            "",
            "..",
            "events/follow",
            "operations/7/wait",
            "operations/7/follow",
            "vms/web/console",
            "vms/",
            "nics/web/capture",
            "arrivals/1/memory",
            "top?x=1",
            "vms/a b",
            "openapi.json",
        ] {
            assert!(!is_topic(topic), "{topic}");
        }
    }
}
