//! Endpoints of the event log.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use suimon_contract::{ErrorBody, Event, EventFilter, Severity};
use tokio::sync::OwnedSemaphorePermit;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::bounded_integer::{BoundedInteger, Count};
use crate::api::line_stream::{LineSource, NextLines, stream_response};
use crate::api::state::ApiState;
use crate::http::{ErrorResponse, Json, QueryParameters};

/// Default number of events in a response.
const LIMIT_DEFAULT: usize = 100;
/// Number of events in a response.
type Limit = BoundedInteger<1, 10_000>;
/// Number of an event kind.
type KindNumber = BoundedInteger<0, { u32::MAX as u64 }>;

/// Largest number of events that a stream reads from the log at a time.
const FOLLOW_EVENTS: usize = 256;

/// Returns the router of event endpoints.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(follow))
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct ListParameters {
    /// Return only events after this sequence number; the latest events if absent.
    #[param(inline)]
    after: Option<Count>,
    /// Largest number of events, 1 to 10 000; 100 if absent.
    #[param(inline)]
    limit: Option<Limit>,
    /// Return only events of at least this severity; all if absent.
    #[param(inline)]
    severity: Option<Severity>,
    /// Return only events about this subject, such as `disk/web`, or about this kind of subject,
    /// such as `disk`.
    subject: Option<String>,
    /// Return only events with this event id, such as 6108.
    #[param(inline)]
    id: Option<KindNumber>,
}

/// Lists events of the log, oldest first.
#[utoipa::path(get, path = "/1.0/events", tag = "events", operation_id = "list_events",
    params(ListParameters),
    responses((status = OK, body = Vec<Event>), (status = "4XX", body = ErrorBody)))]
async fn list(
    State(state): State<ApiState>,
    QueryParameters(parameters): QueryParameters<ListParameters>,
) -> Result<Json<Vec<Event>>, ErrorResponse> {
    let limit = parameters.limit.and_then(|limit| usize::try_from(limit.value()).ok());
    let limit = limit.unwrap_or(LIMIT_DEFAULT);
    let ListParameters { after, severity, subject, id, .. } = parameters;
    let event_filter = filter(severity, subject, id);
    let page = match after {
        Some(after) => state.node.events(after.value(), limit, &event_filter),
        None => state.node.last_events(limit, &event_filter),
    };
    Ok(Json(page.events.into_iter().map(Event::with_new_names).collect()))
}

fn filter(
    severity: Option<Severity>,
    subject: Option<String>,
    id: Option<KindNumber>,
) -> EventFilter {
    let id = id.and_then(|id| u32::try_from(id.value()).ok());
    EventFilter { severity_min: severity.unwrap_or(Severity::Info), subject, kind_number: id }
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct FollowParameters {
    /// Begin after this sequence number, with stored events; with the next new event if absent.
    #[param(inline)]
    after: Option<Count>,
    /// Return only events of at least this severity; all if absent.
    #[param(inline)]
    severity: Option<Severity>,
    /// Return only events about this subject, such as `disk/web`, or about this kind of subject,
    /// such as `disk`.
    subject: Option<String>,
    /// Return only events with this event id, such as 6108.
    #[param(inline)]
    id: Option<KindNumber>,
}

/// Streams events as they occur, one JSON object per line.
///
/// Empty lines keep the connection alive. A client that reads too slowly for the log of 10 000
/// events finds the number of missed events in the field `lost_before` of the next event.
#[utoipa::path(get, path = "/1.0/events/follow", tag = "events", operation_id = "follow_events",
    params(FollowParameters),
    responses((status = OK, content_type = "application/x-ndjson", body = Event),
        (status = "4XX", body = ErrorBody)))]
async fn follow(
    State(state): State<ApiState>,
    QueryParameters(parameters): QueryParameters<FollowParameters>,
) -> Result<Response, ErrorResponse> {
    let slot = state.notifications.acquire_event_follower()?;
    let FollowParameters { after, severity, subject, id } = parameters;
    let event_filter = filter(severity, subject, id);
    let last_seen = after
        .map(Count::value)
        .unwrap_or_else(|| state.node.last_events(0, &event_filter).last_examined);
    let follower =
        EventFollower { state: state.clone(), seen: last_seen, filter: event_filter, _place: slot };
    Ok(stream_response(follower, state.notifications))
}

struct EventFollower {
    state: ApiState,
    seen: u64,
    filter: EventFilter,
    _place: OwnedSemaphorePermit,
}

impl LineSource for EventFollower {
    type Line = Event;

    fn next_lines(&mut self) -> NextLines<Event> {
        let mut page = self.state.node.events(self.seen, FOLLOW_EVENTS, &self.filter);
        self.seen = page.last_examined;
        if let Some(first) = page.events.first_mut().filter(|_| page.missed_count > 0) {
            first.fields.insert("lost_before".to_owned(), page.missed_count.to_string());
        }
        NextLines::More(page.events.into_iter().map(Event::with_new_names).collect())
    }

    fn notification_receiver(
        notifications: &mut crate::notifications::Notifications,
    ) -> &mut tokio::sync::watch::Receiver<u64> {
        &mut notifications.event_sequence
    }
}
