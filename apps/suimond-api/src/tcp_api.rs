//! Optional TCP listener of the API, which requires TLS and a bearer token.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;
use suimon_client::{TokenError, read_token};
use suimon_contract::{ApiConfig, ApiError, ErrorCode};
use suimon_secret_file::{SecretFileError, open_secret};
use suimon_socket_runtime::HandshakeLimits;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::access::{AccessFailures, AuthenticatedListener};
use crate::http::ErrorResponse;
use crate::remedy;
use crate::server::{ClientConnection, TlsListener};

/// Path of the metrics endpoint.
pub(crate) const METRICS_PATH: &str = "/metrics";

/// Validated TCP listener, not yet bound.
pub struct TcpApi {
    address: SocketAddr,
    tls: ServerConfig,
    tokens: Tokens,
}

/// Bearer tokens of the TCP listener.
#[derive(Clone)]
pub struct Tokens {
    /// Token that permits every request.
    all: Token,
    /// Token that permits reading metrics only.
    metrics: Option<Token>,
}

/// Bearer token, compared in constant time.
#[derive(Clone)]
pub(crate) struct Token(Arc<[u8]>);

impl TcpApi {
    /// Loads the files named in `[api]`.
    ///
    /// # Errors
    /// A key is missing, or its file cannot be used; the error names the key.
    pub fn load(config: &ApiConfig) -> Result<Self, ApiError> {
        let address = config.listen.parse().map_err(|_| {
            let text =
                format!("`{}` is not an address and port like 192.0.2.1:8443", config.listen);
            api_error(ErrorCode::InvalidValue, "listen", text)
        })?;
        let certificate = required(config.tls_certificate.as_ref(), "tls_certificate")?;
        let key = required(config.tls_key.as_ref(), "tls_key")?;
        let token = required(config.token_file.as_ref(), "token_file")?;
        let tls = tls(certificate, key)?;
        let tokens = Token::load(token, "api", "token_file")?;
        let metrics = config.metrics_token_file.as_ref();
        let load = |file: &PathBuf| Token::load(file, "api", "metrics_token_file");
        let metrics = metrics.map(load).transpose()?;
        if metrics.as_ref().is_some_and(|metrics| tokens.matches(&metrics.0)) {
            let text = "has the same token as token_file, which permits everything; write another \
                        token into it";
            return Err(api_error(ErrorCode::InvalidValue, "metrics_token_file", text.to_owned()));
        }
        Ok(Self { address, tls, tokens: Tokens { all: tokens, metrics } })
    }

    /// Checks that the address is available by binding it temporarily.
    ///
    /// # Errors
    /// Another process listens on it, or it is not an address of the host.
    pub fn probe(&self) -> Result<(), ApiError> {
        std::net::TcpListener::bind(self.address).map(drop).map_err(|error| self.bind_error(&error))
    }

    /// Binds the address and listens.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(self) -> Result<(TlsListener, Tokens), ApiError> {
        let tcp = tokio::net::TcpListener::bind(self.address).await;
        let tcp = tcp.map_err(|error| self.bind_error(&error))?;
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(self.tls));
        let limits = HandshakeLimits::default();
        Ok((TlsListener { tcp, acceptor, limits }, self.tokens))
    }

    fn bind_error(&self, error: &std::io::Error) -> ApiError {
        let remedy = remedy::listener_error_remedy(error, "api");
        let text = format!("cannot listen on {}: {error}; {remedy}", self.address);
        api_error(ErrorCode::HostError, "listen", text)
    }
}

/// Returns the API restricted to requests with a token that permits them. Wrong tokens are recorded
/// in `failures`.
pub fn with_token_check(router: Router, tokens: Tokens, failures: AccessFailures) -> Router {
    router.layer(from_fn_with_state((tokens, failures), check_token))
}

impl Token {
    /// Reads the first line of a file that must not be readable by other users. `section` and
    /// `field` name the key in errors.
    ///
    /// # Errors
    /// The file cannot be read, is readable by others, or contains a weak token.
    pub(crate) fn load(path: &Path, section: &str, field: &str) -> Result<Self, ApiError> {
        let token = read_token(path).map_err(|error| {
            let code = match &error {
                TokenError::File(error) => code_of(error),
                TokenError::Weak { .. } => ErrorCode::InvalidValue,
            };
            ApiError::new(code, error.to_string()).with_resource(section).with_field(field)
        })?;
        Ok(Self(token.into_bytes().into()))
    }

    /// Returns true if `token_bytes` equals the token; the comparison takes constant time.
    pub(crate) fn matches(&self, token_bytes: &[u8]) -> bool {
        bool::from(token_bytes.ct_eq(&self.0))
    }

    /// Returns true if the request's header `Authorization` contains the token.
    fn is_shown(&self, headers: &HeaderMap) -> bool {
        let header_value = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
        let Some((scheme, token)) = header_value.and_then(|value| value.split_at_checked(7)) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"bearer ") && self.matches(token)
    }
}

async fn check_token(
    State((tokens, failures)): State<(Tokens, AccessFailures)>,
    request: Request,
    next: Next,
) -> Response {
    if tokens.all.is_shown(request.headers()) {
        return next.run(request).await;
    }
    if tokens.metrics.is_some_and(|token| token.is_shown(request.headers())) {
        if request.method() == Method::GET && request.uri().path() == METRICS_PATH {
            return next.run(request).await;
        }
        let text = "the token of [api] metrics_token_file permits `GET /metrics` only; use that of \
                    token_file";
        let error = ApiError::new(ErrorCode::PermissionDenied, text);
        return ErrorResponse::with_status(StatusCode::FORBIDDEN, error).into_response();
    }
    let text = "send the header `Authorization: Bearer TOKEN` with the token of [api] token_file";
    let error = ApiError::new(ErrorCode::Unauthorized, text);
    let failure = ErrorResponse::with_status(StatusCode::UNAUTHORIZED, error);
    let response = ([(header::WWW_AUTHENTICATE, "Bearer")], failure).into_response();
    let Some(header_value) = request.headers().get(header::AUTHORIZATION) else { return response };
    let client = request.extensions().get::<ClientConnection>();
    failures.refuse((AuthenticatedListener::Api, header_value.as_bytes()), client, response).await
}

fn required<'c>(value: Option<&'c PathBuf>, field: &str) -> Result<&'c PathBuf, ApiError> {
    value.ok_or_else(|| {
        let text = "a TCP listener requires tls_certificate, tls_key and token_file; without them \
                    the API is available on the Unix socket only";
        api_error(ErrorCode::MissingKey, field, text.to_owned())
    })
}

fn tls(certificate: &Path, key: &Path) -> Result<ServerConfig, ApiError> {
    let bad = |field: &'static str, path: &Path, error: &dyn std::fmt::Display| {
        let text = format!("{} cannot be used: {error}", path.display());
        api_error(ErrorCode::InvalidValue, field, text)
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| bad("tls_certificate", certificate, &error))?;
    if chain.is_empty() {
        return Err(bad("tls_certificate", certificate, &"the file has no certificate"));
    }
    let mut opened = open_secret(key)
        .map_err(|error| api_error(code_of(&error), "tls_key", error.to_string()))?;
    let secret =
        PrivateKeyDer::from_pem_reader(&mut opened).map_err(|error| bad("tls_key", key, &error))?;
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| bad("tls_key", key, &error))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| bad("tls_key", key, &error))
}

/// Returns the error code for a file with a secret that cannot be used.
const fn code_of(error: &SecretFileError) -> ErrorCode {
    match error {
        SecretFileError::Unreadable { .. } => ErrorCode::HostError,
        SecretFileError::OpenToAll { .. } => ErrorCode::PermissionDenied,
    }
}

fn api_error(code: ErrorCode, field: &str, text: String) -> ApiError {
    ApiError::new(code, text).with_resource("api").with_field(field)
}
