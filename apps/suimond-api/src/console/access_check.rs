//! Access checks of requests to the console: host name, origin and session.
//!
//! A browser sends the cookie of a session to every port of the host name (RFC 6265, section 8.5),
//! where a listener of another user may receive it. The cookie therefore permits nothing without
//! the secret of the same session, which pages of other origins, ports included, cannot read.

use std::net::IpAddr;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use suimon_contract::{ApiError, ErrorCode};

use super::logins::Credentials;
use crate::console::state::ConsoleState;
use crate::http::ErrorResponse;

/// Header that the page sends with every modifying request. Pages of other sites cannot send it
/// without CORS.
const PAGE_HEADER: &str = "x-suimon-console";

/// Header with the secret of the session.
const SECRET_HEADER: &str = "x-suimon-session";

pub(super) const LOGIN_HINT: &str =
    "log in with the address that `suimon console login` prints on the host";
const NO_SECRET: &str = "the session's cookie is not sufficient: send the secret that the login \
                         returned, in the header `X-Suimon-Session`, or log in again";
const NO_TICKET: &str = "this address was used or is older than 30 s; open it from the console's page \
                         again";

/// Content security policy: no external resources, no embedding in other pages.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; font-src 'self'; connect-src 'self'; frame-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Passes requests that are addressed to this listener and are either public or part of a session.
pub(super) async fn check(
    State(state): State<ConsoleState>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut answer = match refusal(&state, &mut request) {
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

/// Returns the response to a request that is not permitted; `None` if it is. Removes a ticket from
/// the request's URL.
fn refusal(state: &ConsoleState, request: &mut Request) -> Option<Response> {
    let console = &state.console;
    // Protects against DNS rebinding: another site's host name may resolve to this address.
    if !is_loopback_host(request.headers()) {
        let text = format!("the console is available at http://{} only", console.address);
        let error = ApiError::new(ErrorCode::PermissionDenied, text);
        return Some(
            ErrorResponse::with_status(StatusCode::MISDIRECTED_REQUEST, error).into_response(),
        );
    }
    let path = request.uri().path();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_login = path == "/console/session" && *request.method() == Method::POST;
    let is_file = is_read && !path.starts_with("/1.0") && !path.starts_with("/console/");
    let objection = if is_read { None } else { objection_to_change(request.headers(), is_login) };
    if let Some(text) = objection {
        let error = ApiError::new(ErrorCode::PermissionDenied, text);
        return Some(ErrorResponse::with_status(StatusCode::FORBIDDEN, error).into_response());
    }
    if is_login || is_file {
        return None;
    }
    objection_to_session(state, request).map(unauthorized)
}

/// Returns why a modifying request is rejected, independent of its session; `None` if it may be
/// permitted.
fn objection_to_change(headers: &HeaderMap, is_login: bool) -> Option<&'static str> {
    if !headers.contains_key(PAGE_HEADER) {
        return Some("changes require the header `X-Suimon-Console: 1`");
    }
    // Programs that log in send no origin, unlike browsers. Permitting this is safe, because a
    // login uses no existing session.
    if is_login && !headers.contains_key(header::ORIGIN) {
        return None;
    }
    let text = "changes are accepted from this console's own page: the header `Origin` has to be \
                `http://` and the value of `Host`";
    (!is_same_origin(headers)).then_some(text)
}

/// Returns why a request is not part of a valid session; `None` if it is. Consumes the request's
/// ticket.
fn objection_to_session(state: &ConsoleState, request: &mut Request) -> Option<&'static str> {
    let (name, now) = (state.console.cookie_name(), Instant::now());
    let mut logins = state.console.logins();
    let cookie = find_cookie(request.headers(), &name)
        .filter(|cookie| logins.is_valid_session_cookie(now, cookie));
    let Some(cookie) = cookie else { return Some(LOGIN_HINT) };
    let uri = request.uri();
    // A page cannot add headers to the handshake of a WebSocket. The first message contains the
    // secret.
    if *request.method() == Method::GET && is_serial_console(uri.path()) {
        return None;
    }
    if let Some(secret) = request.headers().get(SECRET_HEADER) {
        let secret = secret.to_str().unwrap_or_default();
        return (!logins.authenticate_and_extend(now, &Credentials { cookie, secret }))
            .then_some(LOGIN_HINT);
    }
    let ticket = uri.query().and_then(|query| query.strip_prefix("ticket="));
    let Some(ticket) = ticket.filter(|_| *request.method() == Method::GET) else {
        return Some(NO_SECRET);
    };
    if !logins.use_ticket(now, &Credentials { cookie, secret: ticket }, uri.path()) {
        return Some(NO_TICKET);
    }
    drop(logins);
    let path: Uri = uri.path().parse().unwrap_or_default();
    *request.uri_mut() = path;
    None
}

/// Returns true for the endpoint of a serial console.
fn is_serial_console(path: &str) -> bool {
    let name = path.strip_prefix("/console/vms/").and_then(|rest| rest.strip_suffix("/serial"));
    name.is_some_and(|name| !name.contains('/'))
}

/// Returns true if the request is addressed to a loopback address or `localhost`. The port may
/// differ from the listener's, since a tunnel may use another one on the browser's side.
fn is_loopback_host(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let Some((name, port)) = host.and_then(|host| host.rsplit_once(':')) else { return false };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    port.parse::<u16>().is_ok()
        && (name.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| address.is_loopback()))
}

/// Returns true if the request originates from a page of this console. Browsers send the origin
/// with each request that is not `GET` or `HEAD`, and with each WebSocket handshake.
pub(super) fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let origin = text(header::ORIGIN).and_then(|origin| origin.split_once("://"));
    matches!(
        (origin, text(header::HOST)),
        (Some((_, origin_host)), Some(host)) if origin_host.eq_ignore_ascii_case(host)
    )
}

/// Returns the value of the cookie named `cookie`, which identifies the session; `None` if the
/// request has no such cookie.
pub(super) fn find_cookie<'h>(headers: &'h HeaderMap, cookie: &str) -> Option<&'h str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';'));
    pairs.find_map(|pair| pair.trim().strip_prefix(cookie)?.strip_prefix('='))
}

/// Returns the response to a request without a valid session.
pub(super) fn unauthorized(text: &str) -> Response {
    let error = ApiError::new(ErrorCode::Unauthorized, text);
    ErrorResponse::with_status(StatusCode::UNAUTHORIZED, error).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_this_host() {
        let is_own = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
            is_loopback_host(&headers)
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
        assert!(!is_loopback_host(&HeaderMap::new()));
    }

    #[test]
    fn only_a_page_from_here_is_this_consoles_own() {
        let is_own = |origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("localhost:7446"));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
            }
            is_same_origin(&headers)
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
    fn changes_need_the_header_and_the_origin_of_the_own_page() {
        let permitted = |origin: Option<&str>, has_header: bool, is_login: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:7446"));
            if has_header {
                headers.insert(PAGE_HEADER, HeaderValue::from_static("1"));
            }
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
            }
            objection_to_change(&headers, is_login).is_none()
        };
        let own_origin = Some("http://127.0.0.1:7446");
        for is_login in [false, true] {
            assert!(permitted(own_origin, true, is_login));
            assert!(!permitted(own_origin, false, is_login));
            for origin in ["http://127.0.0.1:3000", "http://localhost:7446", "null"] {
                assert!(!permitted(Some(origin), true, is_login), "{origin}");
            }
        }
        assert!(!permitted(None, true, false));
        assert!(permitted(None, true, true), "a program logs in");
    }

    #[test]
    fn only_serial_consoles_take_the_secret_later() {
        assert!(is_serial_console("/console/vms/a%2Fb/serial"));
        for path in ["/console/live", "/console/vms/a/b/serial", "/1.0/vms/a/serial", "/serial"] {
            assert!(!is_serial_console(path), "{path}");
        }
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_static("a=b; suimon-session-1=xyz; c"));
        assert_eq!(find_cookie(&headers, "suimon-session-1"), Some("xyz"));
        assert_eq!(find_cookie(&headers, "suimon-session-11"), None);
        assert_eq!(find_cookie(&headers, "suimon-session"), None);
    }
}
