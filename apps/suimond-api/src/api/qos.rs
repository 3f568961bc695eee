//! Endpoints of Storage QoS. Limits are keys of disks and QoS policies and are changed through
//! their endpoints.

use axum::extract::State;
use suimon_contract::{
    ErrorBody, QosFlowStatus, WhatIfRequest, WhatIfResponse, parse_request_with_old_names,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::changes::log_old_name_warnings;
use crate::api::state::ApiState;
use crate::http::{Body, ErrorResponse, Json, with_field_if_absent};

/// Returns the router of Storage QoS endpoints.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(flows)).routes(routes!(what_if))
}

/// Lists guaranteed, demanded and delivered IOPS of all open disks, with what limits them.
#[utoipa::path(get, path = "/1.0/qos/flows", tag = "qos", operation_id = "list_qos_flows",
    responses((status = OK, body = Vec<QosFlowStatus>)))]
async fn flows(State(state): State<ApiState>) -> Result<Json<Vec<QosFlowStatus>>, ErrorResponse> {
    state.call_blocking_infallible(|node| node.qos_flows()).await.map(Json)
}

/// Computes whether stores could guarantee proposed minimums. Nothing is changed.
#[utoipa::path(post, path = "/1.0/qos/what-if", tag = "qos", operation_id = "forecast_qos",
    request_body = WhatIfRequest,
    responses((status = OK, body = WhatIfResponse), (status = "4XX", body = ErrorBody)))]
async fn what_if(
    State(state): State<ApiState>,
    Body(body): Body,
) -> Result<Json<WhatIfResponse>, ErrorResponse> {
    let (request, old_names) = parse_request_with_old_names::<WhatIfRequest>(&body)
        .map_err(|error| with_field_if_absent(error, "proposals"))?;
    let mut answer = state.call_blocking(move |node| node.what_if(&request)).await?;
    answer.warnings = log_old_name_warnings(&old_names);
    Ok(Json(answer))
}
