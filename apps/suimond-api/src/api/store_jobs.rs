//! Endpoints of operations on stores: capacity measurement and image files.

use axum::extract::State;
use axum::response::Response;
use suimon_contract::{
    ErrorBody, ImageChanges, ImageCheck, ImageInfo, ImageRequest, MeasureStoreRequest, Operation,
    StoreConfig,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::changes::{accepted_response, name_in_path};
use crate::api::disk_jobs::parse_request_body;
use crate::api::state::ApiState;
use crate::http::{Body, ErrorResponse, Json, PathParameters};

/// Returns the router of store operations.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(measure))
        .routes(routes!(image_info))
        .routes(routes!(image_check))
        .routes(routes!(image_repair))
        .routes(routes!(image_relink))
}

/// Measures the capacity of a store in normalised IOPS.
///
/// A directory is measured with a temporary file, a block device with reads only. The result is in
/// the report of the operation and in the status of the store. It limits minimums if
/// `capacity_iops` of the store is `measure`.
#[utoipa::path(post, path = "/1.0/stores/{name}/measure", tag = "stores",
    operation_id = "measure_store", params(("name" = String, Path)),
    request_body = Option<MeasureStoreRequest>,
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn measure(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    let name = name_in_path::<StoreConfig>(&name)?;
    let request_body =
        if body.is_empty() { MeasureStoreRequest::default() } else { parse_request_body(&body)? };
    state
        .call_blocking(move |node| node.measure_store(&name, request_body))
        .await
        .map(accepted_response)
}

/// Returns format, size, ids and parent of an image file in a store.
#[utoipa::path(post, path = "/1.0/stores/{name}/image-info", tag = "stores",
    operation_id = "inspect_image", params(("name" = String, Path)), request_body = ImageRequest,
    responses((status = OK, body = ImageInfo), (status = "4XX", body = ErrorBody)))]
async fn image_info(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    Body(body): Body,
) -> Result<Json<ImageInfo>, ErrorResponse> {
    let name = name_in_path::<StoreConfig>(&name)?;
    let request_body: ImageRequest = parse_request_body(&body)?;
    state.call_blocking(move |node| node.image_info(&name, &request_body)).await.map(Json)
}

/// Checks the metadata of an image file in a store. Nothing is written.
#[utoipa::path(post, path = "/1.0/stores/{name}/image-check", tag = "stores",
    operation_id = "check_image", params(("name" = String, Path)), request_body = ImageRequest,
    responses((status = OK, body = ImageCheck), (status = "4XX", body = ErrorBody)))]
async fn image_check(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    Body(body): Body,
) -> Result<Json<ImageCheck>, ErrorResponse> {
    let name = name_in_path::<StoreConfig>(&name)?;
    let request_body: ImageRequest = parse_request_body(&body)?;
    state.call_blocking(move |node| node.check_image(&name, &request_body)).await.map(Json)
}

/// Repairs the metadata of an image file in a store, after a backup beside the file.
///
/// Metadata of which the file has a second copy is restored. Data blocks are not written. With
/// `undo`, a backup is written back instead.
#[utoipa::path(post, path = "/1.0/stores/{name}/image-repair", tag = "stores",
    operation_id = "repair_image", params(("name" = String, Path)), request_body = ImageRequest,
    responses((status = OK, body = ImageChanges), (status = "4XX", body = ErrorBody)))]
async fn image_repair(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    Body(body): Body,
) -> Result<Json<ImageChanges>, ErrorResponse> {
    let name = name_in_path::<StoreConfig>(&name)?;
    let request_body: ImageRequest = parse_request_body(&body)?;
    state.call_blocking(move |node| node.repair_image(&name, &request_body)).await.map(Json)
}

/// Records the new path of the parent in a differencing image, after a backup beside the file.
#[utoipa::path(post, path = "/1.0/stores/{name}/image-relink", tag = "stores",
    operation_id = "relink_image", params(("name" = String, Path)), request_body = ImageRequest,
    responses((status = OK, body = ImageChanges), (status = "4XX", body = ErrorBody)))]
async fn image_relink(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    Body(body): Body,
) -> Result<Json<ImageChanges>, ErrorResponse> {
    let name = name_in_path::<StoreConfig>(&name)?;
    let request_body: ImageRequest = parse_request_body(&body)?;
    state.call_blocking(move |node| node.set_image_parent(&name, &request_body)).await.map(Json)
}
