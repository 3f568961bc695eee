//! Endpoints of operations on the files of disks. All except snapshots and reopening require an
//! unused disk, which is out of service during the operation.

use axum::extract::State;
use axum::response::Response;
use serde::de::DeserializeOwned;
use suimon_contract::{
    ConvertDiskRequest, DiskConfig, ErrorBody, Operation, SnapshotDiskRequest, parse_request,
};
use suimon_node::DiskFileJob;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::changes::{accepted_response, name_in_path};
use crate::api::state::ApiState;
use crate::http::{Body, ErrorResponse, PathParameters};

/// Returns the router of disk operations.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(check))
        .routes(routes!(compact))
        .routes(routes!(convert))
        .routes(routes!(snapshot))
        .routes(routes!(merge))
        .routes(routes!(reopen))
}

/// Checks the metadata of the image file of a disk and reads all of its data.
///
/// The disk must not be in use, and is out of service until the operation ends. The report of the
/// operation contains the findings.
#[utoipa::path(post, path = "/1.0/disks/{name}/check", tag = "disks",
    operation_id = "check_disk", params(("name" = String, Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn check(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<Response, ErrorResponse> {
    begin(&state, &name, DiskFileJob::Check).await
}

/// Writes the image file of a disk anew without unused blocks.
///
/// The disk must not be in use, and is out of service until the operation ends. The store needs
/// free space for the new file.
#[utoipa::path(post, path = "/1.0/disks/{name}/compact", tag = "disks",
    operation_id = "compact_disk", params(("name" = String, Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn compact(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<Response, ErrorResponse> {
    begin(&state, &name, DiskFileJob::Compact).await
}

/// Copies a disk to another file of its store, in another format or kind.
///
/// The disk must not be in use, and is out of service until the operation ends. The disk and its
/// file are unchanged.
#[utoipa::path(post, path = "/1.0/disks/{name}/convert", tag = "disks",
    operation_id = "convert_disk", params(("name" = String, Path)), request_body = ConvertDiskRequest,

    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn convert(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    begin(&state, &name, DiskFileJob::Convert(parse_request_body(&body)?)).await
}

/// Creates a snapshot: later writes go to a new differencing file over the current one.
///
/// Requests of clients are queued for a moment. The keys `file`, `kind` and `parent` of the disk
/// change.
#[utoipa::path(post, path = "/1.0/disks/{name}/snapshot", tag = "disks",
    operation_id = "snapshot_disk", params(("name" = String, Path)), request_body = SnapshotDiskRequest,

    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn snapshot(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    begin(&state, &name, DiskFileJob::Snapshot(parse_request_body(&body)?)).await
}

/// Merges the file of a differencing disk into its parent, which then is the file of the disk.
///
/// The disk must not be in use, and is out of service until the operation ends. The keys `file`,
/// `kind` and `parent` of the disk change.
#[utoipa::path(post, path = "/1.0/disks/{name}/merge", tag = "disks",
    operation_id = "merge_disk", params(("name" = String, Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn merge(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<Response, ErrorResponse> {
    begin(&state, &name, DiskFileJob::Merge).await
}

/// Closes the image of a disk and opens it again.
///
/// After a failed flush (disk state `faulted`), the metadata of the image is checked, and writes
/// and flushes are executed again. Clients of the disk see a pause.
#[utoipa::path(post, path = "/1.0/disks/{name}/reopen", tag = "disks",
    operation_id = "reopen_disk", params(("name" = String, Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn reopen(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<Response, ErrorResponse> {
    begin(&state, &name, DiskFileJob::Reopen).await
}

async fn begin(state: &ApiState, name: &str, work: DiskFileJob) -> Result<Response, ErrorResponse> {
    let name = name_in_path::<DiskConfig>(name)?;
    state.call_blocking(move |node| node.start_disk_job(&name, work)).await.map(accepted_response)
}

pub(super) fn parse_request_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, ErrorResponse> {
    Ok(parse_request(body)?)
}
