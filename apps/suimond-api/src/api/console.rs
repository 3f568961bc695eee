//! Endpoints of the REST API that concern the web console.

use axum::extract::State;
use suimon_contract::{ApiError, ConsoleLogin, ErrorBody, ErrorCode};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::state::ApiState;
use crate::http::{ErrorResponse, Json};

/// Returns the router of the endpoints about the web console.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(log_in))
}

/// Creates a one-time login URL for the web console, valid for 1 min.
#[utoipa::path(post, path = "/1.0/console/logins", tag = "console", operation_id = "create_console_login",
    responses((status = OK, body = ConsoleLogin), (status = "4XX", body = ErrorBody)))]
async fn log_in(State(state): State<ApiState>) -> Result<Json<ConsoleLogin>, ErrorResponse> {
    let Some(console) = state.console.console() else {
        let is_configured = state.node.config().console.is_some();
        return Err(absent(is_configured).into());
    };
    Ok(console.new_login().map(Json)?)
}

/// Returns the error that no console is in service.
fn absent(is_configured: bool) -> ApiError {
    let (code, text) = if is_configured {
        let text = "the console is not in service; event 1009 states why its listener failed, and \
                    the daemon tries again every 5 s. If `[console]` was added after the start of \
                    the daemon, restart the daemon";
        (ErrorCode::Conflict, text)
    } else {
        let text = "the console is not configured; add `[console]` with `listen = \
                    \"127.0.0.1:7446\"` to the host file, apply it and restart the daemon";
        (ErrorCode::NotFound, text)
    };
    ApiError::new(code, text).with_resource("console")
}
