//! Endpoints of the host as a whole.

use std::path::Path;
use std::sync::OnceLock;

use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing;
use serde::Deserialize;
use suimon_contract::{
    ApiError, ApplyRequest, ErrorBody, ErrorCode, HostConfig, HostStatus, Operation, Plan,
    TopSnapshot, WorkerStatus, host_file_in_apply, old_names_in_apply, parse_apply, to_toml,
};
use suimon_node::Edit;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::changes::{ChangeParameters, change_with_warnings};
use crate::api::state::ApiState;
use crate::http::{Body, ErrorResponse, Json, QueryParameters};

/// Returns the router of host endpoints.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(show))
        .routes(routes!(openapi))
        .routes(routes!(config))
        .routes(routes!(apply))
        .routes(routes!(workers))
        .route("/1.0/processors", routing::get(workers))
        .routes(routes!(top))
        .routes(routes!(export_metrics))
}

/// Returns the status of the host: version, number of objects, drain state and confinement.
#[utoipa::path(get, path = "/1.0", tag = "host", operation_id = "show_host",
    responses((status = OK, body = HostStatus)))]
async fn show(State(state): State<ApiState>) -> Result<Json<HostStatus>, ErrorResponse> {
    state.call_blocking_infallible(|node| node.host_status()).await.map(Json)
}

/// Function that creates the OpenAPI document. It is an extension of the router, because the
/// document describes the endpoints of all modules, including those of this one.
#[derive(Clone, Copy)]
pub(super) struct OpenApiGenerator(pub(super) fn() -> serde_json::Result<String>);

/// Returns the OpenAPI document.
#[utoipa::path(get, path = "/1.0/openapi.json", tag = "host", operation_id = "show_openapi",
    responses((status = OK, content_type = "application/json", body = Object)))]
async fn openapi(
    Extension(OpenApiGenerator(create)): Extension<OpenApiGenerator>,
) -> Result<Response, ErrorResponse> {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    // Created by the first request, so that the start of the daemon does not wait for it.
    let document = match DOCUMENT.get() {
        Some(document) => document,
        None => {
            let created = create().map_err(|error| {
                let text = format!("the OpenAPI document cannot be written: {error}");
                ApiError::new(ErrorCode::Internal, text)
            })?;
            DOCUMENT.get_or_init(|| created)
        }
    };
    Ok(([(header::CONTENT_TYPE, "application/json")], document.as_str()).into_response())
}

/// Format of exported desired state.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ConfigFormat {
    /// JSON value.
    #[default]
    Json,
    /// Host file (TOML).
    Toml,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct ConfigParameters {
    /// Format of the response, `json` or `toml`; `json` if absent.
    #[param(required = false, inline)]
    format: ConfigFormat,
}

/// Returns the stored desired state, as JSON or as a host file (TOML).
#[utoipa::path(get, path = "/1.0/config", tag = "host", operation_id = "export_config",
    params(ConfigParameters),
    responses((status = OK, content((HostConfig = "application/json"), (String = "application/toml")))))]
async fn config(
    State(state): State<ApiState>,
    QueryParameters(parameters): QueryParameters<ConfigParameters>,
) -> Result<Response, ErrorResponse> {
    let config = state.call_blocking_infallible(|node| node.config()).await?;
    Ok(match parameters.format {
        ConfigFormat::Json => Json(config).into_response(),
        ConfigFormat::Toml => {
            ([(header::CONTENT_TYPE, "application/toml")], to_toml(&config)).into_response()
        }
    })
}

/// Replaces the whole desired state.
///
/// Objects that the request does not name are deleted, and keys that it does not set get their
/// defaults. If a step fails, the previous state is restored.
#[utoipa::path(post, path = "/1.0/apply", tag = "host", operation_id = "apply_host",
    params(ChangeParameters), request_body = ApplyRequest,
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn apply(
    State(state): State<ApiState>,
    QueryParameters(parameters): QueryParameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    let text = body.clone();
    let applied = async {
        let host_file = state.host_file.clone();
        let edit = state.call_blocking(move |_| edit_of_apply(&body, host_file.as_deref())).await?;
        let old_names = old_names_in_apply(&text);
        change_with_warnings(&state, edit, parameters, &old_names).await
    };
    applied.await.map_err(|failure: ErrorResponse| failure.with_locations(&text))
}

/// Returns the change that a body requests. If the body contains the daemon's own host file, the
/// daemon does not apply the file again at its next start, which would revert later changes.
fn edit_of_apply(body: &[u8], host_file: Option<&Path>) -> Result<Edit, Vec<ApiError>> {
    let config = Box::new(parse_apply(body)?);
    let own_text = host_file.and_then(|file| crate::host_file::read(file).ok());
    Ok(match host_file_in_apply(body).filter(|text| own_text.as_ref() == Some(text)) {
        Some(text) => Edit::ApplyFile { config, text },
        None => Edit::Apply(config),
    })
}

/// Lists the workers (data-plane threads).
#[utoipa::path(get, path = "/1.0/workers", tag = "workers",
    operation_id = "list_workers", responses((status = OK, body = Vec<WorkerStatus>)))]
async fn workers(State(state): State<ApiState>) -> Result<Json<Vec<WorkerStatus>>, ErrorResponse> {
    state.call_blocking_infallible(|node| node.workers()).await.map(Json)
}

/// Returns the counters of all ports, disks and workers at one moment.
///
/// A client computes rates from two responses and the difference of `time_monotonic_ns`.
#[utoipa::path(get, path = "/1.0/top", tag = "host", operation_id = "show_top",
    responses((status = OK, body = TopSnapshot)))]
async fn top(State(state): State<ApiState>) -> Result<Json<TopSnapshot>, ErrorResponse> {
    state.call_blocking_infallible(|node| node.top()).await.map(Json)
}

/// Returns the metrics in the text format of Prometheus (version 0.0.4).
#[utoipa::path(get, path = "/metrics", tag = "host", operation_id = "show_metrics",
    responses((status = OK, content_type = "text/plain", body = String)))]
async fn export_metrics(State(state): State<ApiState>) -> Result<Response, ErrorResponse> {
    let rejected = state.failures.totals();
    let text = state
        .call_blocking(move |node| {
            suimond_metrics::render(&suimond_metrics::Readings::read_from(node, rejected))
        })
        .await?;
    Ok(([(header::CONTENT_TYPE, suimond_metrics::CONTENT_TYPE)], text).into_response())
}
