//! Endpoints of switches.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use suimon_contract::{AddressStatus, ErrorBody, Operation, Plan, SwitchConfig, SwitchStatus};
use suimon_node::Edit;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::changes::{self, ChangeParameters, change};
use crate::api::failure::{Body, Failure, InPath, Parameters};
use crate::api::state::ApiState;

/// The endpoints of switches.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show, replace, modify, remove))
        .routes(routes!(addresses))
}

/// All switches.
#[utoipa::path(get, path = "/1.0/switches", tag = "switches",
    operation_id = "list_switches",
    responses((status = OK, body = Vec<SwitchStatus>)))]
async fn list(State(state): State<ApiState>) -> Result<Json<Vec<SwitchStatus>>, Failure> {
    state.read(|node| node.switches()).await.map(Json)
}

/// One switch.
#[utoipa::path(get, path = "/1.0/switches/{name}", tag = "switches",
    operation_id = "show_switch", params(("name" = String, Path)),
    responses((status = OK, body = SwitchStatus), (status = NOT_FOUND, body = ErrorBody)))]
async fn show(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
) -> Result<Json<SwitchStatus>, Failure> {
    state.ask(move |node| node.switch(&name)).await.map(Json)
}

/// Adds a switch.
#[utoipa::path(post, path = "/1.0/switches", tag = "switches",
    operation_id = "add_switch", params(ChangeParameters), request_body = SwitchConfig,
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn create(
    State(state): State<ApiState>,
    Parameters(parameters): Parameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, Failure> {
    change(&state, Edit::Switch(changes::add(&body)?), parameters).await
}

/// Puts a switch in place of the one of that name.
#[utoipa::path(put, path = "/1.0/switches/{name}", tag = "switches",
    operation_id = "replace_switch", params(("name" = String, Path), ChangeParameters),
    request_body = SwitchConfig,
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn replace(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
    Parameters(parameters): Parameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, Failure> {
    change(&state, Edit::Switch(changes::put(&name, &body)?), parameters).await
}

/// Changes some keys of a switch by a JSON merge patch (RFC 7386).
#[utoipa::path(patch, path = "/1.0/switches/{name}", tag = "switches",
    operation_id = "change_switch", params(("name" = String, Path), ChangeParameters),
    request_body(content = Object, content_type = "application/merge-patch+json"),
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn modify(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
    Parameters(parameters): Parameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, Failure> {
    change(&state, Edit::Switch(changes::patch(&name, &body)?), parameters).await
}

/// Deletes a switch.
#[utoipa::path(delete, path = "/1.0/switches/{name}", tag = "switches",
    operation_id = "delete_switch", params(("name" = String, Path), ChangeParameters),
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn remove(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
    Parameters(parameters): Parameters<ChangeParameters>,
) -> Result<Response, Failure> {
    change(&state, Edit::Switch(changes::delete(&name)?), parameters).await
}

/// The forwarding table of a switch: configured addresses, then learned ones.
#[utoipa::path(get, path = "/1.0/switches/{name}/addresses", tag = "switches",
    operation_id = "list_addresses", params(("name" = String, Path)),
    responses((status = OK, body = Vec<AddressStatus>), (status = NOT_FOUND, body = ErrorBody)))]
async fn addresses(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
) -> Result<Json<Vec<AddressStatus>>, Failure> {
    state.ask(move |node| node.addresses(&name)).await.map(Json)
}
