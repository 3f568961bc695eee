//! HTTP messages of the API and of the console: request bodies and parameters, JSON responses and
//! error responses.

mod body;
mod error_response;
mod json;

pub(crate) use body::Body;
pub(crate) use error_response::{
    ErrorResponse, PathParameters, QueryParameters, with_field_if_absent,
};
pub(crate) use json::Json;
