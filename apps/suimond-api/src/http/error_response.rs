//! Error responses, and extractors that reject invalid requests.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use suimon_contract::{ApiError, ErrorBody, ErrorCode};

use crate::http::json::Json;

/// Error response: status and errors found.
#[derive(Debug)]
pub struct ErrorResponse {
    status: StatusCode,
    errors: Vec<ApiError>,
}

impl ErrorResponse {
    /// Returns a response with one error and a status other than that of the error's code.
    pub fn with_status(status: StatusCode, error: ApiError) -> Self {
        Self { status, errors: vec![error] }
    }

    /// Returns the body of the response.
    pub fn into_body(self) -> ErrorBody {
        ErrorBody { errors: self.errors }
    }

    /// Adds lines to the errors if `body`, that of `POST /1.0/apply`, contains a host file as text.
    /// Such a body conforms to the API's schema even if the text is not a valid host file, so the
    /// status is 422 instead of 400.
    pub(crate) fn with_locations(mut self, body: &[u8]) -> Self {
        suimon_contract::locate_errors_of_apply(body, &mut self.errors);
        if self.status == StatusCode::BAD_REQUEST && suimon_contract::contains_host_file(body) {
            self.status = StatusCode::UNPROCESSABLE_ENTITY;
        }
        self
    }
}

impl From<Vec<ApiError>> for ErrorResponse {
    fn from(mut errors: Vec<ApiError>) -> Self {
        if errors.is_empty() {
            errors.push(ApiError::new(ErrorCode::Internal, "rejected without a reason"));
        }
        let code = errors.first().map_or(ErrorCode::Internal, |error| error.code);
        let status = StatusCode::from_u16(code.http_status());
        Self { status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), errors }
    }
}

impl From<ApiError> for ErrorResponse {
    fn from(error: ApiError) -> Self {
        vec![error].into()
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        (self.status, Json(self.into_body())).into_response()
    }
}

/// Extractor of query parameters, with the error format of the API.
pub(crate) struct QueryParameters<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(rejection) => Err(refused_parameter(&rejection.body_text())),
        }
    }
}

/// Sets the key of the error unless the error already names one.
pub(crate) fn with_field_if_absent(error: ApiError, field: &str) -> ApiError {
    if error.field.is_some() { error } else { error.with_field(field) }
}

/// Returns the key that an error text of serde names as unknown; `None` for other errors.
fn unknown_field(text: &str) -> Option<&str> {
    text.split("unknown field `").nth(1).and_then(|rest| rest.split('`').next())
}

/// Converts an error text of serde about query parameters to a response, which names the parameter
/// if serde does.
fn refused_parameter(text: &str) -> ErrorResponse {
    let unknown = unknown_field(text);
    let field_name = text.split("query string: ").nth(1).and_then(|rest| rest.split(':').next());
    let code = if unknown.is_some() { ErrorCode::UnknownKey } else { ErrorCode::Malformed };
    let error = ApiError::new(code, text);
    match unknown.or(field_name.filter(|name| !name.contains(' '))) {
        Some(name) => error.with_field(name).into(),
        None => error.into(),
    }
}

/// Extractor of path parameters, with the error format of the API.
pub(crate) struct PathParameters<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParameters<T> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            // A malformed name or number denotes an object that does not exist.
            Err(rejection) => {
                let reason = rejection.body_text();
                let reason = reason.trim_start_matches("Invalid URL: ");
                let text = format!("the path {} does not exist: {reason}", parts.uri.path());
                Err(ApiError::new(ErrorCode::NotFound, text).into())
            }
        }
    }
}
