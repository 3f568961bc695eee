//! The endpoint that measures a store.

use axum::extract::State;
use axum::response::Response;
use suimon_contract::{ErrorBody, MeasureStoreRequest, Operation, StoreConfig};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::body::Body;
use crate::api::changes::{accepted, name_in_path};
use crate::api::disk_jobs::request;
use crate::api::failure::{Failure, InPath};
use crate::api::state::ApiState;

/// The endpoints of work on stores.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(measure))
}

/// Finds out what the store can do: with a file of its own, which is gone afterwards, or by
/// reading a block device. What was found is in the operation's report, and from then on in
/// the store's status; where `capability_iops` is `measure`, promises go by it.
#[utoipa::path(post, path = "/1.0/stores/{name}/measure", tag = "stores",
    operation_id = "measure_store", params(("name" = String, Path)),
    request_body = MeasureStoreRequest,
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn measure(
    State(state): State<ApiState>,
    InPath(name): InPath<String>,
    Body(body): Body,
) -> Result<Response, Failure> {
    let name = name_in_path::<StoreConfig>(&name)?;
    let asked = if body.is_empty() { MeasureStoreRequest::default() } else { request(&body)? };
    state.ask(move |node| node.measure_store(&name, asked)).await.map(accepted)
}
