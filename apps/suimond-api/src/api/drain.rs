//! Endpoints for draining nodes.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use suimon_contract::{DrainPlan, DrainRequest, ErrorBody, Operation};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::changes::accepted_response;
use crate::api::disk_jobs::parse_request_body;
use crate::api::incoming_migrations::DryRunParameters;
use crate::api::state::ApiState;
use crate::http::{Body, ErrorResponse, Json, PathParameters, QueryParameters};

/// Returns the router of drain endpoints.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(drain)).routes(routes!(undrain))
}

/// Drains this host or another node: migrates its running VMs to other nodes, and admits none.
///
/// The operation ends when no VM runs on the node, and fails if a running VM cannot migrate. The
/// node stays drained in both cases, also after a restart of its daemon.
#[utoipa::path(post, path = "/1.0/nodes/{name}/drain", tag = "nodes", operation_id = "drain_node",
    params(("name" = String, Path, description = "Host name of this host, or name of a `[[node]]`."),
        DryRunParameters),
    request_body = DrainRequest,
    responses((status = ACCEPTED, body = Operation), (status = OK, body = DrainPlan),
        (status = "4XX", body = ErrorBody)))]
async fn drain(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    QueryParameters(DryRunParameters { dry_run }): QueryParameters<DryRunParameters>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    let drain_request: DrainRequest = parse_request_body(&body)?;
    if dry_run {
        let plan = state.call_blocking(move |node| node.check_drain(&name, &drain_request)).await?;
        return Ok(Json(plan).into_response());
    }
    state.call_blocking(move |node| node.drain(&name, drain_request)).await.map(accepted_response)
}

/// Ends the drain of a node, so that VMs can migrate to it.
///
/// VMs that have left stay on their new nodes.
#[utoipa::path(post, path = "/1.0/nodes/{name}/undrain", tag = "nodes",
    operation_id = "undrain_node",
    params(("name" = String, Path, description = "Host name of this host, or name of a `[[node]]`.")),
    responses((status = NO_CONTENT), (status = "4XX", body = ErrorBody)))]
async fn undrain(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<StatusCode, ErrorResponse> {
    state.call_blocking(move |node| node.undrain(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}
