//! Endpoints of nics.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use suimon_contract::{ErrorBody, NicConfig, NicStatus, Operation, Plan};
use suimon_node::{Edit, PortKey};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::captures::{CaptureParameters, begin};
use crate::api::changes::{self, ChangeParameters, change};
use crate::api::failure::{Body, Failure, InPath, Parameters};
use crate::api::state::ApiState;

/// The endpoints of nics.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(show, replace, modify, remove))
        .routes(routes!(capture))
}

/// All nics.
#[utoipa::path(get, path = "/1.0/nics", tag = "nics",
    operation_id = "list_nics",
    responses((status = OK, body = Vec<NicStatus>)))]
async fn list(State(state): State<ApiState>) -> Result<Json<Vec<NicStatus>>, Failure> {
    state.read(|node| node.nics()).await.map(Json)
}

/// One nic.
#[utoipa::path(get, path = "/1.0/nics/{name}", tag = "nics",
    operation_id = "show_nic", params(("name" = String, Path)),
    responses((status = OK, body = NicStatus), (status = NOT_FOUND, body = ErrorBody)))]
async fn show(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
) -> Result<Json<NicStatus>, Failure> {
    state.ask(move |node| node.nic(&name)).await.map(Json)
}

/// Adds a nic.
#[utoipa::path(post, path = "/1.0/nics", tag = "nics",
    operation_id = "add_nic", params(ChangeParameters), request_body = NicConfig,
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn create(
    State(state): State<ApiState>,
    Parameters(parameters): Parameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, Failure> {
    change(&state, Edit::Nic(changes::add(&body)?), parameters).await
}

/// Puts a nic in place of the one of that name.
#[utoipa::path(put, path = "/1.0/nics/{name}", tag = "nics",
    operation_id = "replace_nic", params(("name" = String, Path), ChangeParameters),
    request_body = NicConfig,
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn replace(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
    Parameters(parameters): Parameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, Failure> {
    change(&state, Edit::Nic(changes::put(&name, &body)?), parameters).await
}

/// Changes some keys of a nic by a JSON merge patch (RFC 7386).
#[utoipa::path(patch, path = "/1.0/nics/{name}", tag = "nics",
    operation_id = "change_nic", params(("name" = String, Path), ChangeParameters),
    request_body(content = Object, content_type = "application/merge-patch+json"),
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn modify(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
    Parameters(parameters): Parameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, Failure> {
    change(&state, Edit::Nic(changes::patch(&name, &body)?), parameters).await
}

/// Deletes a nic.
#[utoipa::path(delete, path = "/1.0/nics/{name}", tag = "nics",
    operation_id = "delete_nic", params(("name" = String, Path), ChangeParameters),
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn remove(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
    Parameters(parameters): Parameters<ChangeParameters>,
) -> Result<Response, Failure> {
    change(&state, Edit::Nic(changes::delete(&name)?), parameters).await
}

/// The frames that pass the port, as pcapng, until a bound is reached, the
/// connection ends or the operation in `Suimon-Operation` is cancelled.
#[utoipa::path(get, path = "/1.0/nics/{name}/capture", tag = "nics",
    operation_id = "capture_nic", params(("name" = String, Path), CaptureParameters),
    responses((status = OK, content_type = "application/x-pcapng", body = Vec<u8>,
            headers(("suimon-operation" = u64))),
        (status = "4XX", body = ErrorBody)))]
async fn capture(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
    Parameters(parameters): Parameters<CaptureParameters>,
) -> Result<Response, Failure> {
    let name = changes::name_in_path::<NicConfig>(&name)?;
    begin(&state, PortKey::Nic(name), parameters).await
}
