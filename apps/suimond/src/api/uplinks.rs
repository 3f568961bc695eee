//! Endpoints of uplinks.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use suimon_contract::{ErrorBody, Operation, Plan, UplinkConfig, UplinkStatus};
use suimon_node::{Edit, PortKey};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::captures::{CaptureParameters, begin};
use crate::api::changes::{self, ChangeParameters, change};
use crate::api::failure::{Body, Failure, InPath, Parameters};
use crate::api::state::ApiState;

/// The endpoints of uplinks.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show, replace, modify, remove))
        .routes(routes!(capture))
}

/// All uplinks.
#[utoipa::path(get, path = "/1.0/uplinks", tag = "uplinks",
    operation_id = "list_uplinks",
    responses((status = OK, body = Vec<UplinkStatus>)))]
async fn list(State(state): State<ApiState>) -> Result<Json<Vec<UplinkStatus>>, Failure> {
    state.read(|node| node.uplinks()).await.map(Json)
}

/// One uplink.
#[utoipa::path(get, path = "/1.0/uplinks/{name}", tag = "uplinks",
    operation_id = "show_uplink", params(("name" = String, Path)),
    responses((status = OK, body = UplinkStatus), (status = NOT_FOUND, body = ErrorBody)))]
async fn show(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
) -> Result<Json<UplinkStatus>, Failure> {
    state.ask(move |node| node.uplink(&name)).await.map(Json)
}

/// Adds an uplink.
#[utoipa::path(post, path = "/1.0/uplinks", tag = "uplinks",
    operation_id = "add_uplink", params(ChangeParameters), request_body = UplinkConfig,
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn create(
    State(state): State<ApiState>,
    Parameters(parameters): Parameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, Failure> {
    change(&state, Edit::Uplink(changes::add(&body)?), parameters).await
}

/// Puts an uplink in place of the one of that name.
#[utoipa::path(put, path = "/1.0/uplinks/{name}", tag = "uplinks",
    operation_id = "replace_uplink", params(("name" = String, Path), ChangeParameters),
    request_body = UplinkConfig,
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn replace(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
    Parameters(parameters): Parameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, Failure> {
    change(&state, Edit::Uplink(changes::put(&name, &body)?), parameters).await
}

/// Changes some keys of an uplink by a JSON merge patch (RFC 7386).
#[utoipa::path(patch, path = "/1.0/uplinks/{name}", tag = "uplinks",
    operation_id = "change_uplink", params(("name" = String, Path), ChangeParameters),
    request_body(content = Object, content_type = "application/merge-patch+json"),
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn modify(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
    Parameters(parameters): Parameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, Failure> {
    change(&state, Edit::Uplink(changes::patch(&name, &body)?), parameters).await
}

/// Deletes an uplink.
#[utoipa::path(delete, path = "/1.0/uplinks/{name}", tag = "uplinks",
    operation_id = "delete_uplink", params(("name" = String, Path), ChangeParameters),
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn remove(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
    Parameters(parameters): Parameters<ChangeParameters>,
) -> Result<Response, Failure> {
    change(&state, Edit::Uplink(changes::delete(&name)?), parameters).await
}

/// The frames that pass the port, as pcapng, until a bound is reached, the
/// connection ends or the operation in `Suimon-Operation` is cancelled.
#[utoipa::path(get, path = "/1.0/uplinks/{name}/capture", tag = "uplinks",
    operation_id = "capture_uplink", params(("name" = String, Path), CaptureParameters),
    responses((status = OK, content_type = "application/x-pcapng", body = Vec<u8>,
            headers(("suimon-operation" = u64))),
        (status = "4XX", body = ErrorBody)))]
async fn capture(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
    Parameters(parameters): Parameters<CaptureParameters>,
) -> Result<Response, Failure> {
    let name = changes::name_in_path::<UplinkConfig>(&name)?;
    begin(&state, PortKey::Uplink(name), parameters).await
}
