//! Endpoints of SR-IOV adapters. Their desired state is changed under `/1.0/pfs`.

use axum::extract::State;
use suimon_contract::SriovAdapter;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::state::ApiState;
use crate::http::{ErrorResponse, Json, PathParameters};

/// Returns the router of SR-IOV endpoints.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show))
}

/// Lists the SR-IOV adapters of the host with their virtual functions.
#[utoipa::path(get, path = "/1.0/sriov", tag = "sriov", operation_id = "list_sriov",
    responses((status = OK, body = Vec<SriovAdapter>)))]
async fn list(State(state): State<ApiState>) -> Result<Json<Vec<SriovAdapter>>, ErrorResponse> {
    state.call_blocking(|node| node.sriov_adapters()).await.map(Json)
}

/// Returns an SR-IOV adapter with its virtual functions.
#[utoipa::path(get, path = "/1.0/sriov/{adapter}", tag = "sriov", operation_id = "show_sriov",
    params(("adapter" = String, Path, description = "PCI address or network device of the adapter, or name of its `[[pf]]`.")),
    responses((status = OK, body = SriovAdapter)))]
async fn show(
    State(state): State<ApiState>,
    PathParameters(adapter): PathParameters<String>,
) -> Result<Json<SriovAdapter>, ErrorResponse> {
    state.call_blocking(move |node| node.sriov_adapter(&adapter)).await.map(Json)
}
