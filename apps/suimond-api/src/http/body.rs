//! Request bodies: read completely, or rejected in a way that lets the client read the response.

use std::time::Duration;

use axum::body::{BodyDataStream, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use futures_util::StreamExt;
use suimon_contract::{ApiError, ErrorCode, JSON_BYTES_MAX};

use crate::http::error_response::ErrorResponse;

/// Time limit for a client to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest part of an oversized body that is read and discarded. If the connection closed while the
/// client was still sending, the client would get a connection reset instead of the response (RFC
/// 9112, section 9.6). Larger bodies are cut off.
const DISCARDED_BYTES_MAX: usize = 16 * JSON_BYTES_MAX;

/// Complete body of at most [`JSON_BYTES_MAX`] bytes.
pub(crate) struct Body(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, _: &S) -> Result<Self, ErrorResponse> {
        let read = read(request.into_body().into_data_stream());
        tokio::time::timeout(BODY_TIMEOUT, read).await.unwrap_or_else(|_| {
            let text =
                format!("the request body was not received within {} s", BODY_TIMEOUT.as_secs());
            let error = ApiError::new(ErrorCode::Malformed, text);
            Err(ErrorResponse::with_status(StatusCode::REQUEST_TIMEOUT, error))
        })
    }
}

async fn read(mut stream: BodyDataStream) -> Result<Body, ErrorResponse> {
    let mut bytes = Vec::new();
    while let Some(part) = stream.next().await {
        let part = part.map_err(|error| {
            ApiError::new(ErrorCode::Malformed, format!("the request body is incomplete: {error}"))
        })?;
        if part.len() > JSON_BYTES_MAX - bytes.len() {
            drop(bytes);
            return Err(discard(stream).await);
        }
        bytes.extend_from_slice(&part);
    }
    Ok(Body(bytes.into()))
}

/// Discards the rest of an oversized body and returns the error.
async fn discard(mut stream: BodyDataStream) -> ErrorResponse {
    let mut remaining = DISCARDED_BYTES_MAX;
    while let Some(Ok(part)) = stream.next().await {
        let Some(after) = remaining.checked_sub(part.len()) else { break };
        remaining = after;
    }
    let text = format!("the request body exceeds {JSON_BYTES_MAX} bytes");
    let error = ApiError::new(ErrorCode::Malformed, text);
    ErrorResponse::with_status(StatusCode::PAYLOAD_TOO_LARGE, error)
}
