//! HTTP/1.1 over the Unix socket: one connection per request.

use core::time::Duration;
use std::path::Path;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use suimon_contract::{ApiError, ErrorBody, ErrorCode};
use tokio::net::UnixStream;

use crate::ClientError;

/// Longest wait for the head of an answer, beyond what the request itself asks
/// the daemon to wait.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest answer that is read as a whole.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A request: where to and with what.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) content_type: &'static str,
    /// Time the daemon is asked to wait before it answers.
    pub(crate) patience: Duration,
}

impl Call {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            body: None,
            content_type: "application/json",
            patience: Duration::ZERO,
        }
    }

    pub(crate) fn with_body(mut self, body: Vec<u8>) -> Self {
        self.body = Some(body);
        self
    }
}

/// Sends a request and gives the answer if it is a success.
pub(crate) async fn send(socket: &Path, call: Call) -> Result<Response<Incoming>, ClientError> {
    let path = call.path.clone();
    let timeout = ANSWER_TIMEOUT.saturating_add(call.patience);
    let timed_out = || ClientError::TimedOut { path: path.clone(), timeout_s: timeout.as_secs() };
    let answer =
        tokio::time::timeout(timeout, exchange(socket, call)).await.map_err(|_| timed_out())??;
    if answer.status().is_success() {
        return Ok(answer);
    }
    match tokio::time::timeout(ANSWER_TIMEOUT, refusal(answer)).await {
        Ok(error) => Err(error),
        Err(_) => Err(timed_out()),
    }
}

/// What an answer says that is no success.
pub(crate) async fn refusal(answer: Response<Incoming>) -> ClientError {
    let status = answer.status().as_u16();
    match whole(answer).await {
        Ok(body) => refused(status, &body),
        Err(error) => error,
    }
}

/// Sends a request and reads the whole answer as text.
pub(crate) async fn text(socket: &Path, call: Call) -> Result<String, ClientError> {
    let path = call.path.clone();
    let answer = send(socket, call).await?;
    let body = tokio::time::timeout(ANSWER_TIMEOUT, whole(answer)).await.map_err(|_| {
        ClientError::TimedOut { path: path.clone(), timeout_s: ANSWER_TIMEOUT.as_secs() }
    })??;
    String::from_utf8(body.into())
        .map_err(|error| ClientError::NotUnderstood { path, reason: error.to_string() })
}

/// Sends a request and reads the whole answer as JSON.
pub(crate) async fn json<T: DeserializeOwned>(socket: &Path, call: Call) -> Result<T, ClientError> {
    let path = call.path.clone();
    let text = text(socket, call).await?;
    serde_json::from_str(&text)
        .map_err(|error| ClientError::NotUnderstood { path, reason: error.to_string() })
}

async fn exchange(socket: &Path, call: Call) -> Result<Response<Incoming>, ClientError> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|source| ClientError::Unreachable { socket: socket.to_owned(), source })?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // The task ends when the answer's body is read or dropped; its errors reach
    // whoever reads the answer.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    let mut request = Request::builder()
        .method(call.method)
        .uri(&call.path)
        .header(hyper::header::HOST, "suimond")
        .header(hyper::header::CONNECTION, "close");
    if call.body.is_some() {
        request = request.header(hyper::header::CONTENT_TYPE, call.content_type);
    }
    let body = Full::new(Bytes::from(call.body.unwrap_or_default()));
    let request = request.body(body).map_err(|error| ClientError::Broken(error.to_string()))?;
    sender.send_request(request).await.map_err(broken)
}

async fn whole(answer: Response<Incoming>) -> Result<Bytes, ClientError> {
    Limited::new(answer.into_body(), ANSWER_BYTES_MAX)
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .map_err(|error| ClientError::Broken(error.to_string()))
}

#[allow(clippy::needless_pass_by_value, reason = "shape of a map_err argument")]
pub(crate) fn broken(error: hyper::Error) -> ClientError {
    ClientError::Broken(error.to_string())
}

/// The error of an answer that is no success, whoever wrote its body.
fn refused(status: u16, body: &[u8]) -> ClientError {
    let errors = serde_json::from_slice::<ErrorBody>(body)
        .map(|body| body.errors)
        .ok()
        .filter(|errors| !errors.is_empty())
        .unwrap_or_else(|| {
            let head: String = String::from_utf8_lossy(body).chars().take(200).collect();
            let code = match status {
                401 => ErrorCode::Unauthorized,
                404 => ErrorCode::NotFound,
                405 => ErrorCode::MethodNotAllowed,
                400..=499 => ErrorCode::Malformed,
                _ => ErrorCode::Internal,
            };
            vec![ApiError::new(code, format!("the daemon answered {status} {}", head.trim()))]
        });
    ClientError::Refused { status, errors }
}
