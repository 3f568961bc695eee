//! Endpoints of work on the files of disks. All but a snapshot need a disk that nobody uses:
//! it is out of service while they last.

use axum::extract::State;
use axum::response::Response;
use serde::de::DeserializeOwned;
use suimon_contract::{
    ConvertDiskRequest, DiskConfig, ErrorBody, Operation, SnapshotDiskRequest, parse_request,
};
use suimon_node::DiskWork;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::body::Body;
use crate::api::changes::{accepted, name_in_path};
use crate::api::failure::{Failure, InPath};
use crate::api::state::ApiState;

/// The endpoints of work on disks.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(check))
        .routes(routes!(compact))
        .routes(routes!(convert))
        .routes(routes!(snapshot))
        .routes(routes!(merge))
}

/// Looks whether the disk's file is sound, and all of it can be read. What was found is in the
/// operation's report.
#[utoipa::path(post, path = "/1.0/disks/{name}/check", tag = "disks",
    operation_id = "check_disk", params(("name" = String, Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn check(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
) -> Result<Response, Failure> {
    begin(&state, &name, DiskWork::Check).await
}

/// Gives space that the disk's file does not need back to its store.
#[utoipa::path(post, path = "/1.0/disks/{name}/compact", tag = "disks",
    operation_id = "compact_disk", params(("name" = String, Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn compact(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
) -> Result<Response, Failure> {
    begin(&state, &name, DiskWork::Compact).await
}

/// Copies the disk to another file of its store, of any format and kind.
#[utoipa::path(post, path = "/1.0/disks/{name}/convert", tag = "disks",
    operation_id = "convert_disk", params(("name" = String, Path)), request_body = ConvertDiskRequest,

    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn convert(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
    Body(body): Body,
) -> Result<Response, Failure> {
    begin(&state, &name, DiskWork::Convert(request(&body)?)).await
}

/// Keeps what the disk has now: what is written from now on goes to a new file over it, with
/// which the disk goes on. Clients find a pause.
#[utoipa::path(post, path = "/1.0/disks/{name}/snapshot", tag = "disks",
    operation_id = "snapshot_disk", params(("name" = String, Path)), request_body = SnapshotDiskRequest,

    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn snapshot(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
    Body(body): Body,
) -> Result<Response, Failure> {
    begin(&state, &name, DiskWork::Snapshot(request(&body)?)).await
}

/// Writes what is in a differencing disk's file into its parent, with which the disk goes on.
#[utoipa::path(post, path = "/1.0/disks/{name}/merge", tag = "disks",
    operation_id = "merge_disk", params(("name" = String, Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn merge(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
) -> Result<Response, Failure> {
    begin(&state, &name, DiskWork::Merge).await
}

async fn begin(state: &ApiState, name: &str, work: DiskWork) -> Result<Response, Failure> {
    let name = name_in_path::<DiskConfig>(name)?;
    state.ask(move |node| node.work_on_disk(&name, work)).await.map(accepted)
}

pub(super) fn request<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    Ok(parse_request(body)?)
}
