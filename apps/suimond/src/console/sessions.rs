//! Endpoints of sessions: log in, show, log out.

use std::time::Instant;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use suimon_contract::{ApiError, ErrorCode};

use super::{ConsoleState, guard};
use crate::api::{Body, Failure};

/// Credentials of a login.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Login {
    /// Code from `suimon console login`.
    Code(String),
    /// Token of `[console] token_file`.
    Token(String),
}

/// Information about the host for a logged-in page.
#[derive(Serialize)]
struct Session {
    host_name: String,
    version: String,
    /// Available login methods.
    logins: Vec<&'static str>,
}

/// Logs in.
pub(super) async fn log_in(State(state): State<ConsoleState>, Body(body): Body) -> Response {
    let console = &state.console;
    let login: Login = match serde_json::from_slice(&body) {
        Ok(login) => login,
        Err(error) => {
            let text = format!("log in with {{\"code\": …}} or {{\"token\": …}}: {error}");
            return Failure::from(ApiError::new(ErrorCode::Malformed, text)).into_response();
        }
    };
    let is_right = match &login {
        Login::Code(code) => console.logins().use_code(Instant::now(), code),
        Login::Token(token) => console.token.as_ref().is_some_and(|of| of.is(token.as_bytes())),
    };
    if !is_right {
        let text = match login {
            Login::Code(_) => {
                "this login code was used or has expired; run `suimon console login` on the host \
                 for another"
            }
            Login::Token(_) if console.token.is_none() => {
                "token login is off, because [console] token_file is not set; log in with the URL \
                 that `suimon console login` prints on the host"
            }
            Login::Token(_) => {
                "the token differs from that in the file that [console] token_file names"
            }
        };
        return guard::unauthorized(text);
    }
    match console.logins().new_session(Instant::now()) {
        Ok(session) => {
            let cookie =
                format!("{}={session}; Path=/; HttpOnly; SameSite=Strict", console.cookie());
            (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
        }
        Err(error) => {
            let text = format!("the system returned no random bytes: {error}; retry");
            Failure::from(ApiError::new(ErrorCode::HostError, text)).into_response()
        }
    }
}

/// Returns information about the host to a logged-in page.
pub(super) async fn show(State(state): State<ConsoleState>) -> Result<Response, Failure> {
    let host = state.api.read(|node| node.host_status()).await?;
    let mut logins = vec!["code"];
    logins.extend(state.console.token.as_ref().map(|_| "token"));
    Ok(Json(Session { host_name: host.name, version: host.version, logins }).into_response())
}

/// Logs out.
pub(super) async fn log_out(State(state): State<ConsoleState>, headers: HeaderMap) -> Response {
    let console = &state.console;
    if let Some(session) = guard::session(&headers, &console.cookie()) {
        console.logins().end_session(session);
    }
    let cookie = format!("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", console.cookie());
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
}
