//! Endpoints specific to switches.

use axum::extract::State;
use suimon_contract::AddressStatus;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::state::ApiState;
use crate::http::{ErrorResponse, Json, PathParameters};

/// Returns the router of endpoints specific to switches.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(addresses))
}

/// Returns the forwarding table of a switch: configured addresses, then learned ones.
#[utoipa::path(get, path = "/1.0/switches/{name}/addresses", tag = "switches",
    operation_id = "list_addresses", params(("name" = String, Path)),
    responses((status = OK, body = Vec<AddressStatus>)))]
async fn addresses(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<Json<Vec<AddressStatus>>, ErrorResponse> {
    state.call_blocking(move |node| node.addresses(&name)).await.map(Json)
}
