//! JSON responses. Renamed fields are written under both names.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use suimon_contract::to_json;

/// Response with a value as JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match to_json(&self.0) {
            Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
            Err(error) => {
                let text = format!("the response cannot be written as JSON: {error}");
                (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
            }
        }
    }
}
