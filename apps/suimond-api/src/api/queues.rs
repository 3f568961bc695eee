//! Endpoints of queues.

use axum::extract::State;
use axum::response::Response;
use suimon_contract::{
    ApiError, ErrorBody, ErrorCode, MoveQueueRequest, Operation, QueueStatus,
    parse_request_with_old_names,
};
use suimon_node::QueueSide;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::bounded_integer::BoundedInteger;
use crate::api::changes::{accepted_response, log_old_name_warnings};
use crate::api::state::ApiState;
use crate::http::{Body, ErrorResponse, Json, PathParameters, with_field_if_absent};

/// Number of a port's queue.
type QueueIndex = BoundedInteger<0, { u16::MAX as u64 }>;

/// Returns the router of queue endpoints.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(hand_over))
}

/// Lists the queues of all ports with the worker that services each.
#[utoipa::path(get, path = "/1.0/queues", tag = "queues", operation_id = "list_queues",
    responses((status = OK, body = Vec<QueueStatus>)))]
async fn list(State(state): State<ApiState>) -> Result<Json<Vec<QueueStatus>>, ErrorResponse> {
    state.call_blocking_infallible(|node| node.queues()).await.map(Json)
}

/// Moves a queue to another worker.
///
/// No frame is lost or reordered. The assignment is not part of desired state.
#[utoipa::path(post, path = "/1.0/queues/{port}/{side}/{index}/move", tag = "queues",
    operation_id = "move_queue", request_body = MoveQueueRequest,
    params(("port" = String, Path, description = "Name of the NIC or uplink, or of the switch for its host NIC."),
        ("side" = String, Path, pattern = "^(rx|tx)$", description = "Direction. For a NIC, `rx` carries frames to the guest; for an uplink, `rx` carries frames from the network."), ("index" = inline(QueueIndex), Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn hand_over(
    State(state): State<ApiState>,
    PathParameters((port, side, index)): PathParameters<(String, String, QueueIndex)>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    let (request, old_names) = parse_request_with_old_names::<MoveQueueRequest>(&body)
        .map_err(|error| with_field_if_absent(error, "worker"))?;
    let side = QueueSide::parse(&side).ok_or_else(|| {
        let text = format!("the direction of a queue is `rx` or `tx`, not `{side}`");
        ApiError::new(ErrorCode::NotFound, text).with_resource(format!("queue/{port}"))
    })?;
    let index = u16::try_from(index.value()).unwrap_or(u16::MAX);
    let mut operation = state
        .call_blocking(move |node| node.move_queue(&port, side, index, request.worker))
        .await?;
    operation.warnings = log_old_name_warnings(&old_names);
    Ok(accepted_response(operation))
}
