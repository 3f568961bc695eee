//! Endpoints of power management.

use axum::extract::State;
use axum::response::Response;
use suimon_contract::{
    ErrorBody, Operation, Plan, PowerConfig, PowerStatus, ResourceKind, check_patch,
    old_names_in_table, parse_power,
};
use suimon_node::{Edit, PowerEdit};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::changes::{ChangeParameters, change, change_with_warnings};
use crate::api::state::ApiState;
use crate::http::{Body, ErrorResponse, Json, QueryParameters};

/// Returns the router of power endpoints.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(show, put, patch, delete))
}

/// Returns the power plan, the state of each CPU setting, and power in milliwatts.
#[utoipa::path(get, path = "/1.0/power", tag = "power", operation_id = "show_power",
    responses((status = OK, body = PowerStatus)))]
async fn show(State(state): State<ApiState>) -> Result<Json<PowerStatus>, ErrorResponse> {
    state.call_blocking_infallible(|node| node.power()).await.map(Json)
}

/// Replaces the power plan.
///
/// Keys that the request does not set get the values of the plan.
#[utoipa::path(put, path = "/1.0/power", tag = "power", operation_id = "replace_power",
    params(ChangeParameters), request_body = PowerConfig,
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn put(
    State(state): State<ApiState>,
    QueryParameters(parameters): QueryParameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    let power = parse_power(&body)?;
    let edit = Edit::Power(PowerEdit::Put(power));
    change_with_warnings(&state, edit, parameters, &old_names_in_table(ResourceKind::Power, &body))
        .await
}

/// Changes keys of the power plan with a JSON merge patch (RFC 7386).
#[utoipa::path(patch, path = "/1.0/power", tag = "power", operation_id = "change_power",
    params(ChangeParameters),
    request_body(content = ref("#/components/schemas/PowerConfigPatch"), content_type = "application/merge-patch+json"),
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn patch(
    State(state): State<ApiState>,
    QueryParameters(parameters): QueryParameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    check_patch(ResourceKind::Power, &body)?;
    let edit = Edit::Power(PowerEdit::Patch(body.to_vec()));
    change_with_warnings(&state, edit, parameters, &old_names_in_table(ResourceKind::Power, &body))
        .await
}

/// Removes the power plan and restores the CPU settings that were in effect before it.
#[utoipa::path(delete, path = "/1.0/power", tag = "power", operation_id = "delete_power",
    params(ChangeParameters),
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn delete(
    State(state): State<ApiState>,
    QueryParameters(parameters): QueryParameters<ChangeParameters>,
) -> Result<Response, ErrorResponse> {
    change(&state, Edit::Power(PowerEdit::Delete), parameters).await
}
