//! HTTP/1.1 transport of the client; each request uses a new connection.

use core::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::client::conn::http1::SendRequest;
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use suimon_contract::{ApiError, ErrorBody, ErrorCode};

use crate::{Client, ClientError};

/// Request: method, path, body, and time that the daemon may wait before it responds.
pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) content_type: &'static str,
    /// Time that the request asks the daemon to wait before it responds.
    pub(crate) server_wait: Duration,
}

impl ApiRequest {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            body: None,
            content_type: "application/json",
            server_wait: Duration::ZERO,
        }
    }

    pub(crate) fn with_body(mut self, body: Vec<u8>) -> Self {
        self.body = Some(body);
        self
    }
}

/// Sends a request and returns the response.
///
/// # Errors
/// The request failed, or the response's status is not a success.
pub(crate) async fn send(
    client: &Client,
    call: ApiRequest,
) -> Result<Response<Incoming>, ClientError> {
    let path = call.path.clone();
    let timeout = client.response_timeout.saturating_add(call.server_wait);
    let timed_out = || ClientError::TimedOut { path: path.clone(), timeout_s: timeout.as_secs() };
    let answer =
        tokio::time::timeout(timeout, exchange(client, call)).await.map_err(|_| timed_out())??;
    if answer.status().is_success() {
        return Ok(answer);
    }
    match tokio::time::timeout(client.response_timeout, refusal(client, answer)).await {
        Ok(error) => Err(error),
        Err(_) => Err(timed_out()),
    }
}

/// Reads the body of an unsuccessful response and returns the error in it.
async fn refusal(client: &Client, answer: Response<Incoming>) -> ClientError {
    let status = answer.status().as_u16();
    match read_body(client, answer).await {
        Ok(body) => refused(status, &body),
        Err(error) => error,
    }
}

/// Sends a request and reads the complete response as text.
pub(crate) async fn fetch_text(client: &Client, call: ApiRequest) -> Result<String, ClientError> {
    let path = call.path.clone();
    let answer = send(client, call).await?;
    let timeout = client.response_timeout;
    let body = tokio::time::timeout(timeout, read_body(client, answer)).await.map_err(|_| {
        ClientError::TimedOut { path: path.clone(), timeout_s: timeout.as_secs() }
    })??;
    String::from_utf8(body.into())
        .map_err(|error| ClientError::InvalidResponse { path, reason: error.to_string() })
}

/// Sends a request and reads the complete response as JSON.
pub(crate) async fn fetch_json<T: DeserializeOwned>(
    client: &Client,
    call: ApiRequest,
) -> Result<T, ClientError> {
    let path = call.path.clone();
    let text = fetch_text(client, call).await?;
    suimon_contract::from_json(text.as_bytes())
        .map_err(|error| ClientError::InvalidResponse { path, reason: error.to_string() })
}

impl Client {
    /// Requests `path` by `GET` and parses the response as JSON.
    pub(crate) async fn get_json<T: DeserializeOwned>(
        &self,
        path: impl Into<String>,
    ) -> Result<T, ClientError> {
        fetch_json(self, ApiRequest::get(path)).await
    }
}

/// Upgrades a new connection to `protocol` (RFC 9110, section 7.8). It then carries bytes unchanged
/// in both directions.
pub(crate) async fn upgrade(
    client: &Client,
    path: &str,
    protocol: &'static str,
) -> Result<TokioIo<Upgraded>, ClientError> {
    let timeout = client.response_timeout;
    let timed_out =
        || ClientError::TimedOut { path: path.to_owned(), timeout_s: timeout.as_secs() };
    let upgrading = async {
        let mut sender = connect(client).await?;
        let request = request(client, Method::GET, path)
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, protocol)
            .body(Full::default())
            .map_err(|error| ClientError::ConnectionLost(error.to_string()))?;
        let answer = sender.send_request(request).await.map_err(connection_error)?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(refusal(client, answer).await);
        }
        hyper::upgrade::on(answer).await.map(TokioIo::new).map_err(connection_error)
    };
    tokio::time::timeout(timeout, upgrading).await.map_err(|_| timed_out())?
}

async fn exchange(client: &Client, call: ApiRequest) -> Result<Response<Incoming>, ClientError> {
    let mut sender = connect(client).await?;
    let mut request = request(client, call.method, &call.path).header(header::CONNECTION, "close");
    if call.body.is_some() {
        request = request.header(header::CONTENT_TYPE, call.content_type);
    }
    let body = Full::new(Bytes::from(call.body.unwrap_or_default()));
    let request =
        request.body(body).map_err(|error| ClientError::ConnectionLost(error.to_string()))?;
    sender.send_request(request).await.map_err(connection_error)
}

/// Opens a new connection to the daemon for one request.
async fn connect(client: &Client) -> Result<SendRequest<Full<Bytes>>, ClientError> {
    let stream = client.transport.connect().await?;
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(connection_error)?;
    // The task ends when the response's body is read or dropped; its errors are reported by the
    // body.
    tokio::spawn(async move {
        let _ = connection.with_upgrades().await;
    });
    Ok(sender)
}

fn request(client: &Client, method: Method, path: &str) -> hyper::http::request::Builder {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, client.transport.host_header());
    match client.transport.authorization_header() {
        Some(credentials) => request.header(header::AUTHORIZATION, credentials),
        None => request,
    }
}

async fn read_body(client: &Client, answer: Response<Incoming>) -> Result<Bytes, ClientError> {
    Limited::new(answer.into_body(), client.response_bytes_max)
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .map_err(|error| ClientError::ConnectionLost(error.to_string()))
}

#[allow(clippy::needless_pass_by_value, reason = "shape of a map_err argument")]
pub(crate) fn connection_error(error: hyper::Error) -> ClientError {
    ClientError::ConnectionLost(error.to_string())
}

/// Creates the error for an unsuccessful response. The body may not be that of a daemon, since a
/// server of another program may have sent it.
fn refused(status: u16, body: &[u8]) -> ClientError {
    let errors = serde_json::from_slice::<ErrorBody>(body)
        .map(|body| body.errors)
        .ok()
        .filter(|errors| !errors.is_empty())
        .unwrap_or_else(|| {
            let excerpt: String = String::from_utf8_lossy(body).chars().take(200).collect();
            let code = match status {
                401 => ErrorCode::Unauthorized,
                404 => ErrorCode::NotFound,
                405 => ErrorCode::MethodNotAllowed,
                400..=499 => ErrorCode::Malformed,
                _ => ErrorCode::Internal,
            };
            vec![ApiError::new(
                code,
                format!("the daemon responded with status {status}: {}", excerpt.trim()),
            )]
        });
    ClientError::Refused { status, errors }
}
