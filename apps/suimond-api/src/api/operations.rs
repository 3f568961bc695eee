//! Endpoints of operations.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use suimon_contract::{ApiError, ErrorCode, Operation, OperationState};
use tokio::sync::watch;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::bounded_integer::{BoundedInteger, Count};
use crate::api::line_stream::{LineSource, NextLines, stream_response};
use crate::api::state::ApiState;
use crate::http::{ErrorResponse, Json, PathParameters, QueryParameters};
use crate::notifications::Notifications;

/// Default time in seconds that a request waits for an operation.
const WAIT_DEFAULT_S: u64 = 30;
/// Time in seconds that a request waits for an operation.
type WaitSeconds = BoundedInteger<0, 3600>;

/// Returns the router of operation endpoints.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show, cancel))
        .routes(routes!(wait))
        .routes(routes!(follow))
}

/// Lists running operations and the last 1000 that have ended, oldest first.
///
/// The plans, reports and errors of operations that have ended are kept up to 16 MiB. Beyond that
/// size, the operations that ended first have `details_dropped` instead.
#[utoipa::path(get, path = "/1.0/operations", tag = "operations",
    operation_id = "list_operations", responses((status = OK, body = Vec<Operation>)))]
async fn list(State(state): State<ApiState>) -> Json<Vec<Operation>> {
    Json(state.node.operations())
}

/// Returns progress, result and plan of an operation.
#[utoipa::path(get, path = "/1.0/operations/{id}", tag = "operations",
    operation_id = "show_operation", params(("id" = inline(Count), Path)),
    responses((status = OK, body = Operation)))]
async fn show(
    State(state): State<ApiState>,
    PathParameters(id): PathParameters<Count>,
) -> Result<Json<Operation>, ErrorResponse> {
    let id = id.value();
    state.node.operation(id).map(Json).ok_or_else(|| not_found(id))
}

/// Requests the cancellation of an operation.
///
/// The operation ends before its next step, and the previous state is restored. An operation that
/// has ended stays unchanged. `GET` returns a cancelled operation until 1000 later operations have
/// ended.
#[utoipa::path(delete, path = "/1.0/operations/{id}", tag = "operations",
    operation_id = "cancel_operation", params(("id" = inline(Count), Path)),
    responses((status = OK, body = Operation)))]
async fn cancel(
    State(state): State<ApiState>,
    PathParameters(id): PathParameters<Count>,
) -> Result<Json<Operation>, ErrorResponse> {
    let id = id.value();
    state.node.cancel_operation(id).map(Json).ok_or_else(|| not_found(id))
}

#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct WaitParameters {
    /// Time limit in seconds, 0 to 3600; 30 if absent.
    #[param(inline)]
    timeout_s: Option<WaitSeconds>,
}

/// Waits until an operation has ended or the time limit is reached, and returns it.
#[utoipa::path(get, path = "/1.0/operations/{id}/wait", tag = "operations",
    operation_id = "wait_operation", params(("id" = inline(Count), Path), WaitParameters),
    responses((status = OK, body = Operation)))]
async fn wait(
    State(state): State<ApiState>,
    PathParameters(id): PathParameters<Count>,
    QueryParameters(parameters): QueryParameters<WaitParameters>,
) -> Result<Json<Operation>, ErrorResponse> {
    let id = id.value();
    let timeout_s = parameters.timeout_s.map_or(WAIT_DEFAULT_S, WaitSeconds::value);
    let deadline = tokio::time::sleep(Duration::from_secs(timeout_s));
    tokio::pin!(deadline);
    let mut notifications = state.notifications.clone();
    loop {
        notifications.operation_changes.borrow_and_update();
        let operation = state.node.operation(id).ok_or_else(|| not_found(id))?;
        if operation.state != OperationState::Running {
            return Ok(Json(operation));
        }
        tokio::select! {
            changed = notifications.operation_changes.changed() => {
                if changed.is_err() {
                    return Ok(Json(operation));
                }
            }
            () = &mut deadline => return Ok(Json(operation)),
            _ = notifications.stopping.wait_for(|ended| *ended) => return Ok(Json(operation)),
        }
    }
}

/// Streams an operation after each of its changes until it has ended, one JSON object per line.
///
/// Empty lines keep the connection alive.
#[utoipa::path(get, path = "/1.0/operations/{id}/follow", tag = "operations",
    operation_id = "follow_operation", params(("id" = inline(Count), Path)),
    responses((status = OK, content_type = "application/x-ndjson", body = Operation)))]
async fn follow(
    State(state): State<ApiState>,
    PathParameters(id): PathParameters<Count>,
) -> Result<Response, ErrorResponse> {
    let id = id.value();
    if state.node.operation(id).is_none() {
        return Err(not_found(id));
    }
    let notifications = state.notifications.clone();
    Ok(stream_response(OperationFollower { state, id, last_sent: None }, notifications))
}

struct OperationFollower {
    state: ApiState,
    id: u64,
    last_sent: Option<Operation>,
}

impl LineSource for OperationFollower {
    type Line = Operation;

    fn next_lines(&mut self) -> NextLines<Operation> {
        let Some(operation) = self.state.node.operation(self.id) else {
            return NextLines::Last(Vec::new());
        };
        let has_ended = operation.state != OperationState::Running;
        let is_new = self.last_sent.as_ref() != Some(&operation);
        self.last_sent = Some(operation.clone());
        let lines = if is_new { vec![operation] } else { Vec::new() };
        if has_ended { NextLines::Last(lines) } else { NextLines::More(lines) }
    }

    fn notification_receiver(notifications: &mut Notifications) -> &mut watch::Receiver<u64> {
        &mut notifications.operation_changes
    }
}

fn not_found(id: u64) -> ErrorResponse {
    let text = "the operation does not exist; the daemon keeps the last 1000 until it ends";
    ApiError::new(ErrorCode::NotFound, text).with_resource(format!("operation/{id}")).into()
}
