//! The web console: the page, who is logged in to it, what it sees live, and serial consoles of VMs in it.
//!
//! A listener on loopback, without TLS, for browsers on this machine. The page may do what the REST API
//! lets it do, by the same endpoints, for whoever is logged in: with a code that `suimon console login`
//! asks the daemon for, which takes access to its Unix socket, or with the token of `[console]
//! token_file`.

mod files;
mod guard;
mod live;
mod logins;
mod serial;
mod sessions;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use suimon_contract::{ApiError, ConsoleConfig, ConsoleLogin, ErrorCode};
use tokio::net::TcpListener;
use tower::ServiceExt;

use crate::api::ApiState;
use crate::remedy;
use crate::tcp_api::Token;

use logins::{CODE_SPAN, Logins};

/// The console of `[console]`.
pub struct Console {
    address: SocketAddr,
    token: Option<Token>,
    logins: Mutex<Logins>,
}

/// What the console's own endpoints can reach.
#[derive(Clone)]
struct ConsoleState {
    console: Arc<Console>,
    api: ApiState,
    /// The REST API's endpoints.
    endpoints: Router,
}

impl Console {
    /// Reads what `[console]` names.
    ///
    /// # Errors
    /// What it names cannot be used; the key is named.
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
        Ok(Self { address, token: token.transpose()?, logins: Mutex::default() })
    }

    /// Checks that the address is free, without listening any longer.
    ///
    /// # Errors
    /// Another process listens there, or the host does not have the address.
    pub(crate) fn probe(&self) -> Result<(), ApiError> {
        std::net::TcpListener::bind(self.address).map(drop).map_err(|error| self.taken(&error))
    }

    /// Listens.
    ///
    /// # Errors
    /// The address cannot be had.
    pub async fn bind(&self) -> Result<TcpListener, ApiError> {
        TcpListener::bind(self.address).await.map_err(|error| self.taken(&error))
    }

    fn taken(&self, error: &std::io::Error) -> ApiError {
        let remedy = remedy::for_listener(error, "console");
        let text = format!("cannot listen on {}: {error}; {remedy}", self.address);
        refused(ErrorCode::HostError, "listen", text)
    }

    /// Lets somebody log in once, soon.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn new_login(&self) -> Result<ConsoleLogin, ApiError> {
        let code = self.logins().new_code(Instant::now()).map_err(|error| {
            let text = format!("the system has no random bytes: {error}; try again");
            ApiError::new(ErrorCode::HostError, text).about("console")
        })?;
        let url = format!("http://{}/#/login?code={code}", self.address);
        Ok(ConsoleLogin { url, valid_s: CODE_SPAN.as_secs() })
    }

    fn logins(&self) -> MutexGuard<'_, Logins> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Name of the cookie with the session. Browsers do not tell ports apart.
    fn cookie(&self) -> String {
        format!("suimon-session-{}", self.address.port())
    }
}

/// The console as a service; `endpoints` are the REST API's.
pub fn router(console: Arc<Console>, api: ApiState, endpoints: Router) -> Router {
    let state = ConsoleState { console, api, endpoints };
    Router::new()
        .route(
            "/console/session",
            get(sessions::show).post(sessions::log_in).delete(sessions::log_out),
        )
        .route("/console/live", get(live::follow))
        .route("/console/vms/{name}/serial", get(serial::open))
        .fallback(endpoint_or_file)
        .layer(axum::middleware::from_fn_with_state(state.clone(), guard::check))
        .with_state(state)
}

/// What is below `/1.0` is the REST API's, under its own paths; the rest are files.
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
