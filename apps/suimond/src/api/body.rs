//! Bodies of requests: read whole, or refused so that the client can read why.

use std::time::Duration;

use axum::body::{BodyDataStream, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use futures_util::StreamExt;
use suimon_contract::{ApiError, ErrorCode, JSON_BYTES_MAX};

use crate::api::failure::Failure;

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of a body that is too large is read and forgotten. A client that still
/// sends when the connection closes sees a broken pipe and not the answer (RFC 9112,
/// section 9.6); one that sends more than this has earned it.
const FORGOTTEN_BYTES_MAX: usize = 16 * JSON_BYTES_MAX;

/// A body of at most [`JSON_BYTES_MAX`] bytes, complete.
pub(crate) struct Body(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let read = read(request.into_body().into_data_stream());
        tokio::time::timeout(BODY_TIMEOUT, read).await.unwrap_or_else(|_| {
            let text = format!("the body did not come within {} s", BODY_TIMEOUT.as_secs());
            let error = ApiError::new(ErrorCode::Malformed, text);
            Err(Failure::with_status(StatusCode::REQUEST_TIMEOUT, error))
        })
    }
}

async fn read(mut stream: BodyDataStream) -> Result<Body, Failure> {
    let mut bytes = Vec::new();
    while let Some(part) = stream.next().await {
        let part = part.map_err(|error| {
            ApiError::new(ErrorCode::Malformed, format!("the body is not complete: {error}"))
        })?;
        if part.len() > JSON_BYTES_MAX - bytes.len() {
            drop(bytes);
            return Err(forget(stream).await);
        }
        bytes.extend_from_slice(&part);
    }
    Ok(Body(bytes.into()))
}

/// Lets the client send the rest of a body that is too large.
async fn forget(mut stream: BodyDataStream) -> Failure {
    let mut left = FORGOTTEN_BYTES_MAX;
    while let Some(Ok(part)) = stream.next().await {
        let Some(after) = left.checked_sub(part.len()) else { break };
        left = after;
    }
    let text = format!("the body is larger than {JSON_BYTES_MAX} bytes");
    let error = ApiError::new(ErrorCode::Malformed, text);
    Failure::with_status(StatusCode::PAYLOAD_TOO_LARGE, error)
}
