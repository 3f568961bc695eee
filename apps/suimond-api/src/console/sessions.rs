//! Endpoints of sessions: log in, show, log out.

use std::time::Instant;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use suimon_contract::{ApiError, ErrorCode};

use super::access_check;
use super::logins::Credentials;
use crate::access::AuthenticatedListener;
use crate::console::state::ConsoleState;
use crate::http::{Body, ErrorResponse};
use crate::server::ClientConnection;

/// Credentials in a login request.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum LoginRequest {
    /// Code from `suimon console login`.
    Code(String),
    /// Token of `[console] token_file`.
    Token(String),
    /// A code or the token, if the user may have entered either.
    Secret(String),
}

/// Secret of the new session, the body of the response to a login; the cookie is in a header.
#[derive(Serialize)]
struct LoggedIn {
    /// To be sent in the header `X-Suimon-Session` of every request.
    secret: String,
}

/// Information about the host for a logged-in page.
#[derive(Serialize)]
struct Session {
    host_name: String,
    version: String,
    /// Available login methods.
    logins: Vec<&'static str>,
}

/// Checks the credentials and starts a session.
pub(super) async fn log_in(
    State(state): State<ConsoleState>,
    client: Option<Extension<ClientConnection>>,
    Body(body): Body,
) -> Response {
    let console = &state.console;
    let login: LoginRequest = match serde_json::from_slice(&body) {
        Ok(login) => login,
        Err(error) => {
            let text = format!("log in with {{\"code\": …}} or {{\"token\": …}}: {error}");
            return ErrorResponse::from(ApiError::new(ErrorCode::Malformed, text)).into_response();
        }
    };
    let is_code = |code: &str| console.logins().use_code(Instant::now(), code);
    let is_token = |token: &str| {
        console.token.as_ref().is_some_and(|console_token| console_token.matches(token.as_bytes()))
    };
    let is_right = match &login {
        LoginRequest::Code(code) => is_code(code),
        LoginRequest::Token(token) => is_token(token),
        LoginRequest::Secret(secret) => is_code(secret) || is_token(secret),
    };
    if !is_right {
        let text = match login {
            LoginRequest::Secret(_) if console.token.is_some() => {
                "this is neither an unused login code of the last minute nor the token in the file \
                 that [console] token_file names; run `suimon console login` on the host for a code"
            }
            LoginRequest::Code(_) | LoginRequest::Secret(_) => {
                "this login code was used or has expired; run `suimon console login` on the host \
                 for another"
            }
            LoginRequest::Token(_) if console.token.is_none() => {
                "token login is off, because [console] token_file is not set; log in with the URL \
                 that `suimon console login` prints on the host"
            }
            LoginRequest::Token(_) => {
                "the token differs from that in the file that [console] token_file names"
            }
        };
        let client = client.map(|Extension(client)| client);
        let refusal = access_check::unauthorized(text);
        return state
            .api
            .failures
            .refuse((AuthenticatedListener::Console, &body), client.as_ref(), refusal)
            .await;
    }
    match console.logins().new_session(Instant::now()) {
        Ok(Credentials { cookie, secret }) => {
            let cookie =
                format!("{}={cookie}; Path=/; HttpOnly; SameSite=Strict", console.cookie_name());
            ([(header::SET_COOKIE, cookie)], Json(LoggedIn { secret })).into_response()
        }
        Err(error) => {
            let text = format!("the system returned no random bytes: {error}; retry");
            ErrorResponse::from(ApiError::new(ErrorCode::HostError, text)).into_response()
        }
    }
}

/// Returns information about the host to a logged-in page.
pub(super) async fn show(State(state): State<ConsoleState>) -> Result<Response, ErrorResponse> {
    let host = state.api.call_blocking_infallible(|node| node.host_status()).await?;
    let mut logins = vec!["code"];
    logins.extend(state.console.token.as_ref().map(|_| "token"));
    Ok(Json(Session { host_name: host.name, version: host.version, logins }).into_response())
}

/// Ends the session of the request.
pub(super) async fn log_out(State(state): State<ConsoleState>, headers: HeaderMap) -> Response {
    let console = &state.console;
    if let Some(session) = access_check::find_cookie(&headers, &console.cookie_name()) {
        console.logins().end_session(session);
    }
    let cookie =
        format!("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", console.cookie_name());
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
}
