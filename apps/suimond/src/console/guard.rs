//! Access checks of requests to the console: host name, origin and session.

use std::net::IpAddr;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use suimon_contract::{ApiError, ErrorCode};

use super::ConsoleState;
use crate::api::Failure;

/// Header that the page sends with every modifying request. Pages of other sites cannot send it
/// without CORS.
const PAGE_HEADER: &str = "x-suimon-console";

/// Content security policy: no external resources, no embedding in other pages.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; font-src 'self'; connect-src 'self'; frame-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Passes requests that are addressed to this listener and are either public or part of a session.
pub(super) async fn check(
    State(state): State<ConsoleState>,
    request: Request,
    next: Next,
) -> Response {
    let mut answer = match refusal(&state, &request) {
        None => next.run(request).await,
        Some(refusal) => refusal,
    };
    let headers = answer.headers_mut();
    // Reports of the lab have a policy of their own.
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    for (name, value) in
        [(header::X_CONTENT_TYPE_OPTIONS, "nosniff"), (header::REFERRER_POLICY, "no-referrer")]
    {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

fn refusal(state: &ConsoleState, request: &Request) -> Option<Response> {
    let console = &state.console;
    // Protects against DNS rebinding: another site's host name may resolve to this address.
    if !is_own_host(request.headers()) {
        let text = format!("the console is available at http://{} only", console.address);
        let error = ApiError::new(ErrorCode::PermissionDenied, text);
        return Some(Failure::with_status(StatusCode::MISDIRECTED_REQUEST, error).into_response());
    }
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_read && !request.headers().contains_key(PAGE_HEADER) {
        let text = format!("requests that change something require the header `{PAGE_HEADER}: 1`");
        let error = ApiError::new(ErrorCode::PermissionDenied, text);
        return Some(Failure::with_status(StatusCode::FORBIDDEN, error).into_response());
    }
    let path = request.uri().path();
    let is_for_all = match path {
        "/console/session" => *request.method() == Method::POST,
        _ => is_read && !path.starts_with("/1.0") && !path.starts_with("/console/"),
    };
    let cookie = console.cookie();
    let is_logged_in = || {
        session(request.headers(), &cookie)
            .is_some_and(|session| console.logins().renew(Instant::now(), session))
    };
    if is_for_all || is_logged_in() {
        return None;
    }
    Some(unauthorized("log in with the URL that `suimon console login` prints on the host"))
}

/// Returns true if the request is addressed to a loopback address or `localhost`. The port may
/// differ from the listener's, since a tunnel may use another one on the browser's side.
fn is_own_host(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let Some((name, port)) = host.and_then(|host| host.rsplit_once(':')) else { return false };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    port.parse::<u16>().is_ok()
        && (name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|of| of.is_loopback()))
}

/// Returns true if the request originates from a page of this console. Browsers send the origin
/// with each WebSocket handshake; other clients have no session cookie of a user.
pub(super) fn is_of_own_page(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let origin = text(header::ORIGIN).and_then(|origin| origin.split_once("://"));
    matches!((origin, text(header::HOST)), (Some((_, from)), Some(host)) if from.eq_ignore_ascii_case(host))
}

/// Returns the session id in a request's cookies.
pub(super) fn session<'h>(headers: &'h HeaderMap, cookie: &str) -> Option<&'h str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';'));
    pairs.find_map(|pair| pair.trim().strip_prefix(cookie)?.strip_prefix('='))
}

/// Returns the response to a request without a valid session.
pub(super) fn unauthorized(text: &str) -> Response {
    let error = ApiError::new(ErrorCode::Unauthorized, text);
    Failure::with_status(StatusCode::UNAUTHORIZED, error).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_this_host() {
        let is_own = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
            is_own_host(&headers)
        };
        for host in ["127.0.0.1:7446", "localhost:7446", "LOCALHOST:9000", "[::1]:7446"] {
            assert!(is_own(host), "{host}");
        }
        for host in [
            "evil.example:7446",
            "192.0.2.1:7446",
            "localhost.evil.example:7446",
            "",
            "localhost:x",
        ] {
            assert!(!is_own(host), "{host}");
        }
        assert!(!is_own_host(&HeaderMap::new()));
    }

    #[test]
    fn only_a_page_from_here_is_this_consoles_own() {
        let is_own = |origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("localhost:7446"));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
            }
            is_of_own_page(&headers)
        };
        assert!(is_own(Some("http://localhost:7446")));
        for origin in [
            None,
            Some("null"),
            Some("http://localhost:3000"),
            Some("http://127.0.0.1:7446"),
            Some("https://evil.example"),
            Some("http://localhost:7446.evil.example"),
        ] {
            assert!(!is_own(origin), "{origin:?}");
        }
    }

    #[test]
    fn a_session_is_found_among_cookies() {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_static("a=b; suimon-session-1=xyz; c"));
        assert_eq!(session(&headers, "suimon-session-1"), Some("xyz"));
        assert_eq!(session(&headers, "suimon-session-11"), None);
        assert_eq!(session(&headers, "suimon-session"), None);
    }
}
