//! Tickets: permission for the browser to load a URL without the headers that requests of the page
//! have.

use std::time::Instant;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use suimon_contract::{ApiError, ErrorCode};

use super::access_check;
use super::logins::TICKET_SPAN;
use crate::console::state::ConsoleState;
use crate::http::{Body, ErrorResponse};

/// Longest path of a ticket in bytes.
const PATH_BYTES_MAX: usize = 1024;

/// Body of a request for a ticket.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestedSession {
    /// Path of the address, without a query.
    path: String,
}

/// Permission to load one path once.
#[derive(Serialize)]
struct Ticket {
    /// To be sent as the query `ticket=…`.
    ticket: String,
    /// Time in seconds for which the ticket is valid.
    valid_s: u64,
}

/// Creates a ticket for one `GET` of a path in the session of the request.
pub(super) async fn create(
    State(state): State<ConsoleState>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    let RequestedSession { path } = serde_json::from_slice(&body).map_err(|error| {
        let text = format!("request a ticket with {{\"path\": …}}: {error}");
        ApiError::new(ErrorCode::Malformed, text)
    })?;
    if !is_loaded_by_address(&path) {
        let text = "tickets are for reports of the lab, `/1.0/lab/runs/ID/report`; send other \
                    requests with the header `X-Suimon-Session`";
        return Err(ApiError::new(ErrorCode::InvalidValue, text).with_field("path").into());
    }
    let cookie = access_check::find_cookie(&headers, &state.console.cookie_name())
        .unwrap_or_default()
        .to_owned();
    let created = state.console.logins().new_ticket(Instant::now(), &cookie, path);
    let created = created.map_err(|error| {
        let text = format!("the system has no random bytes: {error}; try again");
        ApiError::new(ErrorCode::HostError, text)
    })?;
    let valid_s = TICKET_SPAN.as_secs();
    Ok(created.map_or_else(
        || access_check::unauthorized(access_check::LOGIN_HINT),
        |ticket| Json(Ticket { ticket, valid_s }).into_response(),
    ))
}

/// Returns true for the path of a lab run's report, the only kind of path with tickets. The page
/// shows reports in a frame or another tab, for which it cannot send the session's header.
fn is_loaded_by_address(path: &str) -> bool {
    let id = path.strip_prefix("/1.0/lab/runs/").and_then(|rest| rest.strip_suffix("/report"));
    id.is_some_and(|id| !id.is_empty() && !id.contains(['/', '?', '#']))
        && path.len() <= PATH_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_are_for_reports_only() {
        assert!(is_loaded_by_address("/1.0/lab/runs/vmq-teaming-20260102T030405/report"));
        let long_path = format!("/1.0/lab/runs/{}/report", "x".repeat(PATH_BYTES_MAX));
        for path in [
            "",
            "/1.0/config",
            "/1.0/lab/runs//report",
            "/1.0/lab/runs/a/b/report",
            "/1.0/lab/runs/a/report?x=1",
            "/1.0/vms/web/console",
            &long_path,
        ] {
            assert!(!is_loaded_by_address(path), "{path}");
        }
    }
}
