//! Web console: page, sessions, live updates, and serial consoles of VMs.
//!
//! A listener on loopback without TLS, for browsers on this machine. A logged-in page may use the
//! same endpoints as clients of the REST API. A session has two secrets: a cookie, and a value that
//! the page sends in a header or as the first message of a WebSocket. For what the browser loads by
//! address, the page requests a ticket. Logins require a code from `suimon console login`,
//! which requires access to the daemon's Unix socket, or the token of `[console] token_file`.

mod access_check;
mod files;
pub(crate) mod listener;
mod live;
mod logins;
mod serial;
mod sessions;
mod state;
mod tickets;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use tower::ServiceExt;

pub use self::listener::{Console, ConsoleInService, LIVE_STREAMS_MAX};
use crate::api::ApiState;
use crate::console::state::ConsoleState;

/// Returns the console as a service. `endpoints` are those of the REST API.
pub fn router(console: Arc<Console>, api: ApiState, endpoints: Router) -> Router {
    let state = ConsoleState { console, api, endpoints };
    Router::new()
        .route(
            "/console/session",
            get(sessions::show).post(sessions::log_in).delete(sessions::log_out),
        )
        .route("/console/tickets", post(tickets::create))
        .route("/console/live", get(live::follow))
        .route("/console/vms/{name}/serial", get(serial::open))
        .fallback(endpoint_or_file)
        .layer(axum::middleware::from_fn_with_state(state.clone(), access_check::check))
        .with_state(state)
}

/// Routes paths below `/1.0` to the REST API, and all others to the page's files.
async fn endpoint_or_file(State(state): State<ConsoleState>, request: Request) -> Response {
    let path = request.uri().path();
    if path == "/1.0" || path.starts_with("/1.0/") {
        let Ok(answer) = state.endpoints.oneshot(request).await;
        return answer;
    }
    files::serve(request.uri())
}
