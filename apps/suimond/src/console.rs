//! Web console: page, sessions, live updates, and serial consoles of VMs.
//!
//! A listener on loopback without TLS, for browsers on this machine. A logged-in page may use the
//! same endpoints as clients of the REST API. A session has two secrets: a cookie, and a value that
//! the page sends in a header or as the first message of a WebSocket. For what the browser loads by
//! address, the page requests a ticket. Logins require a code from `suimon console login`,
//! which requires access to the daemon's Unix socket, or the token of `[console] token_file`.

mod access_check;
mod files;
mod live;
mod logins;
mod serial;
mod sessions;
mod tickets;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use suimon_contract::{ApiError, ConsoleConfig, ConsoleLogin, ErrorCode};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::ServiceExt;

use crate::api::ApiState;
use crate::remedy;
use crate::tcp_api::Token;

use logins::{CODE_SPAN, Logins};

/// Console configured by `[console]`.
pub struct Console {
    address: SocketAddr,
    token: Option<Token>,
    logins: Mutex<Logins>,
    /// Permits of WebSockets that have not sent the secret of their session.
    without_secret: Arc<Semaphore>,
}

/// State available to the console's own endpoints.
#[derive(Clone)]
struct ConsoleState {
    console: Arc<Console>,
    api: ApiState,
    /// Endpoints of the REST API.
    endpoints: Router,
}

impl Console {
    /// Loads the files named in `[console]`.
    ///
    /// # Errors
    /// The address or a file cannot be used; the error names the key.
    pub fn load(config: &ConsoleConfig) -> Result<Self, ApiError> {
        let address: Option<SocketAddr> = config.listen.parse().ok();
        let Some(address) = address.filter(|address| address.ip().is_loopback()) else {
            let text = format!(
                "`{}` is not a loopback address and port like 127.0.0.1:7446",
                config.listen
            );
            return Err(refused(ErrorCode::InvalidValue, "listen", text));
        };
        let token =
            config.token_file.as_ref().map(|file| Token::load(file, "console", "token_file"));
        Ok(Self {
            address,
            token: token.transpose()?,
            logins: Mutex::default(),
            without_secret: Arc::new(Semaphore::new(serial::WITHOUT_SECRET_MAX)),
        })
    }

    /// Checks that the address is available by binding it temporarily.
    ///
    /// # Errors
    /// Another process listens on it, or it is not an address of the host.
    pub(crate) fn probe(&self) -> Result<(), ApiError> {
        std::net::TcpListener::bind(self.address).map(drop).map_err(|error| self.taken(&error))
    }

    /// Binds the address and listens.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(&self) -> Result<TcpListener, ApiError> {
        TcpListener::bind(self.address).await.map_err(|error| self.taken(&error))
    }

    fn taken(&self, error: &std::io::Error) -> ApiError {
        let remedy = remedy::for_listener(error, "console");
        let text = format!("cannot listen on {}: {error}; {remedy}", self.address);
        refused(ErrorCode::HostError, "listen", text)
    }

    /// Creates a code for one login within `CODE_SPAN`.
    ///
    /// # Errors
    /// The system cannot provide random bytes.
    pub fn new_login(&self) -> Result<ConsoleLogin, ApiError> {
        let code = self.logins().new_code(Instant::now()).map_err(|error| {
            let text = format!("the system returned no random bytes: {error}; retry");
            ApiError::new(ErrorCode::HostError, text).about("console")
        })?;
        let url = format!("http://{}/#/login?code={code}", self.address);
        Ok(ConsoleLogin { url, valid_s: CODE_SPAN.as_secs() })
    }

    fn logins(&self) -> MutexGuard<'_, Logins> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the name of the session cookie. It contains the port, since browsers share cookies
    /// between ports.
    fn cookie(&self) -> String {
        format!("suimon-session-{}", self.address.port())
    }
}

/// Returns the console as a service. `endpoints` are those of the REST API.
pub fn router(console: Arc<Console>, api: ApiState, endpoints: Router) -> Router {
    let state = ConsoleState { console, api, endpoints };
    Router::new()
        .route(
            "/console/session",
            get(sessions::show).post(sessions::log_in).delete(sessions::log_out),
        )
        .route("/console/tickets", post(tickets::create))
        .route("/console/live", get(live::follow))
        .route("/console/vms/{name}/serial", get(serial::open))
        .fallback(endpoint_or_file)
        .layer(axum::middleware::from_fn_with_state(state.clone(), access_check::check))
        .with_state(state)
}

/// Routes paths below `/1.0` to the REST API, and all others to the page's files.
async fn endpoint_or_file(State(state): State<ConsoleState>, request: Request) -> Response {
    let path = request.uri().path();
    if path == "/1.0" || path.starts_with("/1.0/") {
        let Ok(answer) = state.endpoints.oneshot(request).await;
        return answer;
    }
    files::serve(request.uri())
}

fn refused(code: ErrorCode, field: &str, text: String) -> ApiError {
    ApiError::new(code, text).about("console").field(field)
}
