//! Endpoints of VMQ. Settings are keys of teams and uplinks and are changed through their
//! endpoints.

use axum::extract::State;
use suimon_contract::VmqStatus;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::state::ApiState;
use crate::http::{ErrorResponse, Json, PathParameters};

/// Returns the router of VMQ endpoints.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show))
}

/// Lists the VMQ state of every uplink and team that a switch uses.
///
/// The settings are changed with the key `vmq` of the uplink or team.
#[utoipa::path(get, path = "/1.0/vmq", tag = "vmq", operation_id = "list_vmq",
    responses((status = OK, body = Vec<VmqStatus>)))]
async fn list(State(state): State<ApiState>) -> Result<Json<Vec<VmqStatus>>, ErrorResponse> {
    state.call_blocking_infallible(|node| node.vmqs()).await.map(Json)
}

/// Returns the VMQ state of an uplink or team: the worker of each queue, and why it was assigned.
#[utoipa::path(get, path = "/1.0/vmq/{uplink}", tag = "vmq", operation_id = "show_vmq",
    params(("uplink" = String, Path, description = "Name of the uplink or team.")),
    responses((status = OK, body = VmqStatus)))]
async fn show(
    State(state): State<ApiState>,
    PathParameters(uplink): PathParameters<String>,
) -> Result<Json<VmqStatus>, ErrorResponse> {
    state.call_blocking(move |node| node.vmq(&uplink)).await.map(Json)
}
