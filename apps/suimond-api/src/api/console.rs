//! Endpoints of the REST API that concern the web console.

use axum::extract::State;
use suimon_contract::{ApiError, ConsoleLogin, ErrorBody, ErrorCode};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::failure::ErrorResponse;
use crate::api::json::Json;
use crate::api::state::ApiState;

/// Returns the router of the endpoints about the web console.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(log_in))
}

/// Creates a one-time login URL for the web console, valid for 1 min.
#[utoipa::path(post, path = "/1.0/console/logins", tag = "console", operation_id = "create_console_login",
    responses((status = OK, body = ConsoleLogin), (status = "4XX", body = ErrorBody)))]
async fn log_in(State(state): State<ApiState>) -> Result<Json<ConsoleLogin>, ErrorResponse> {
    let Some(console) = &state.console else {
        let text = "the console is not configured; add `[console]` with `listen = \
                    \"127.0.0.1:7446\"` to the host file, apply it and restart the daemon";
        return Err(ApiError::new(ErrorCode::NotFound, text).about("console").into());
    };
    Ok(console.new_login().map(Json)?)
}
