//! Files of the page, embedded in the program.

use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use suimon_contract::{ApiError, ErrorCode};

use crate::http::ErrorResponse;

// `FILES`: paths relative to `console/dist` with their contents; empty if the page was not built.
include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

/// Caching of files in `assets/`: their names contain a hash of their content, so that a file with
/// a given name never changes.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Returns the response with a file of the page: `index.html` for the root path, status 404 for an
/// unknown path.
pub(super) fn serve(uri: &Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    let file_name = if path.is_empty() { "index.html" } else { path };
    let Some((name, bytes)) = FILES.iter().find(|(name, _)| *name == file_name) else {
        return missing(path).into_response();
    };
    let mut answer = bytes.into_response();
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(name)));
    let caching = if name.starts_with("assets/") { FOR_EVER } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    answer
}

fn missing(path: &str) -> ErrorResponse {
    let text = if FILES.is_empty() {
        "this suimond was built without the console's page; build it with `make run` or `make deb`, \
         or run `npm ci && npm run build` in console/ before cargo"
            .to_owned()
    } else {
        format!("the console has no file {path}")
    };
    ErrorResponse::with_status(StatusCode::NOT_FOUND, ApiError::new(ErrorCode::NotFound, text))
}

/// Returns the media type of a file name (RFC 2046 and the IANA registry of media types).
fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "woff2" => "font/woff2",
        "png" => "image/png",
        "txt" => "text/plain; charset=utf-8",
        "json" => "application/json",
        _ => "application/octet-stream",
    }
}
