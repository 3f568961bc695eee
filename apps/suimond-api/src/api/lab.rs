//! Endpoints of the lab.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use suimon_contract::{
    ApiError, ErrorBody, LabComparison, LabRequest, LabRun, LabRunDetails, LabRunRequest,
    LabStatus, parse_request,
};
use suimond_lab::Lab;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::state::ApiState;
use crate::http::{Body, ErrorResponse, Json, PathParameters, QueryParameters};

/// Content security policy of a report. A report contains its own style and script and loads
/// nothing else. The sandbox isolates it from the console's page, whatever its content.
const REPORT_POLICY: &str = "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; \
                             script-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; \
                             base-uri 'none'; form-action 'none'";

/// Returns the router of lab endpoints.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(status))
        .routes(routes!(list, request_run))
        .routes(routes!(show))
        .routes(routes!(report))
        .routes(routes!(withdraw))
        .routes(routes!(compare))
}

/// Lists experiments that can be run, the state of the lab worker, and queued requests.
#[utoipa::path(get, path = "/1.0/lab", tag = "lab", operation_id = "show_lab",
    responses((status = OK, body = LabStatus)))]
async fn status(State(state): State<ApiState>) -> Result<Json<LabStatus>, ErrorResponse> {
    with_lab(&state, |lab| lab.status(now_ms())).await.map(Json)
}

/// Lists the last 500 runs with progress and verdict, latest first.
#[utoipa::path(get, path = "/1.0/lab/runs", tag = "lab", operation_id = "list_lab_runs",
    responses((status = OK, body = Vec<LabRun>)))]
async fn list(State(state): State<ApiState>) -> Result<Json<Vec<LabRun>>, ErrorResponse> {
    with_lab(&state, Lab::runs).await.map(Json)
}

/// Requests a run of an experiment.
///
/// The process `suimon lab work` executes requests in order.
#[utoipa::path(post, path = "/1.0/lab/runs", tag = "lab", operation_id = "request_lab_run",
    request_body = LabRunRequest,
    responses((status = ACCEPTED, body = LabRequest), (status = "4XX", body = ErrorBody)))]
async fn request_run(
    State(state): State<ApiState>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    let run_request: LabRunRequest =
        parse_request(&body).map_err(|error| error.with_resource("lab"))?;
    let request = with_lab(&state, move |lab| lab.request_run(now_ms(), &run_request)).await?;
    Ok((StatusCode::ACCEPTED, Json(request)).into_response())
}

/// Returns a run with the figures of its plan: published, measured and simulated.
#[utoipa::path(get, path = "/1.0/lab/runs/{id}", tag = "lab", operation_id = "show_lab_run",
    params(("id" = String, Path)),
    responses((status = OK, body = LabRunDetails)))]
async fn show(
    State(state): State<ApiState>,
    PathParameters(id): PathParameters<String>,
) -> Result<Json<LabRunDetails>, ErrorResponse> {
    with_lab(&state, move |lab| lab.run_details(&id)).await.map(Json)
}

/// Returns the report of a run, one self-contained HTML page.
#[utoipa::path(get, path = "/1.0/lab/runs/{id}/report", tag = "lab",
    operation_id = "show_lab_report", params(("id" = String, Path)),
    responses((status = OK, content_type = "text/html", body = String)))]
async fn report(
    State(state): State<ApiState>,
    PathParameters(id): PathParameters<String>,
) -> Result<Response, ErrorResponse> {
    let page = with_lab(&state, move |lab| lab.html_report(&id)).await?;
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, REPORT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, page).into_response())
}

/// Withdraws a queued request, or stops its run and keeps the values measured so far.
///
/// A request that has ended stays unchanged.
#[utoipa::path(delete, path = "/1.0/lab/requests/{id}", tag = "lab",
    operation_id = "withdraw_lab_request", params(("id" = String, Path)),
    responses((status = OK, body = LabRequest)))]
async fn withdraw(
    State(state): State<ApiState>,
    PathParameters(id): PathParameters<String>,
) -> Result<Json<LabRequest>, ErrorResponse> {
    with_lab(&state, move |lab| lab.withdraw(now_ms(), &id)).await.map(Json)
}

#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CompareParameters {
    /// Id of a run.
    a: String,
    /// Id of the run to compare with.
    b: String,
}

/// Compares two runs with the Mann-Whitney test, for every measure contained in both.
#[utoipa::path(get, path = "/1.0/lab/compare", tag = "lab", operation_id = "compare_lab_runs",
    params(CompareParameters),
    responses((status = OK, body = LabComparison), (status = "4XX", body = ErrorBody)))]
async fn compare(
    State(state): State<ApiState>,
    QueryParameters(query): QueryParameters<CompareParameters>,
) -> Result<Json<LabComparison>, ErrorResponse> {
    with_lab(&state, move |lab| lab.compare(&query.a, &query.b)).await.map(Json)
}

/// Runs a call of the lab, which reads files, on a thread for blocking calls.
async fn with_lab<T: Send + 'static>(
    state: &ApiState,
    call: impl FnOnce(&Lab) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ErrorResponse> {
    let lab = Arc::clone(&state.lab);
    state.call_blocking(move |_| call(&lab)).await
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
