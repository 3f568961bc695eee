//! Endpoints of queues.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use suimon_contract::{ApiError, ErrorBody, ErrorCode, MoveQueueRequest, Operation, QueueStatus};
use suimon_node::QueueSide;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::body::Body;
use crate::api::changes::accepted;
use crate::api::failure::{Failure, InPath, unknown_field};
use crate::api::state::ApiState;

/// The endpoints of queues.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(hand_over))
}

/// All queues and the processors that own them.
#[utoipa::path(get, path = "/1.0/queues", tag = "queues", operation_id = "list_queues",
    responses((status = OK, body = Vec<QueueStatus>)))]
async fn list(State(state): State<ApiState>) -> Result<Json<Vec<QueueStatus>>, Failure> {
    state.read(|node| node.queues()).await.map(Json)
}

/// Hands a queue over to another processor: nothing is lost or reordered.
#[utoipa::path(post, path = "/1.0/queues/{port}/{side}/{index}/move", tag = "queues",
    operation_id = "move_queue", request_body = MoveQueueRequest,
    params(("port" = String, Path, description = "Name of the NIC, uplink or switch"),
        ("side" = String, Path, description = "`rx` or `tx`"), ("index" = u16, Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn hand_over(
    State(state): State<ApiState>,
    InPath((port, side, index)): InPath<(String, String, u16)>,
    Body(body): Body,
) -> Result<Response, Failure> {
    let request: MoveQueueRequest = serde_json::from_slice(&body).map_err(|error| {
        let text = format!("the body cannot be read: {error}");
        match unknown_field(&text) {
            Some(name) => ApiError::new(ErrorCode::UnknownKey, &text).field(name),
            None => ApiError::new(ErrorCode::Malformed, &text).field("processor"),
        }
    })?;
    let side = QueueSide::parse(&side).ok_or_else(|| {
        let text = format!("a queue is `rx` or `tx`, not `{side}`");
        ApiError::new(ErrorCode::NotFound, text).about(format!("queue/{port}"))
    })?;
    let operation =
        state.ask(move |node| node.move_queue(&port, side, index, request.processor)).await?;
    Ok(accepted(operation))
}
