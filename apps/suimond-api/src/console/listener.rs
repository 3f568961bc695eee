//! Listener of the console, and the logins of its pages.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use suimon_contract::{ApiError, ConsoleConfig, ConsoleLogin, ErrorCode};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::console::logins::{CODE_SPAN, Logins};
use crate::remedy;
use crate::tcp_api::Token;

/// Largest number of connections that have not sent the secret.
pub(super) const UNAUTHENTICATED_CONNECTIONS_MAX: usize = 8;
/// Largest number of concurrent streams of live updates. Each holds a response of up to 4 MiB.
pub const LIVE_STREAMS_MAX: usize = 64;

/// Console configured by `[console]`.
pub struct Console {
    pub(super) address: SocketAddr,
    pub(super) token: Option<Token>,
    pub(super) logins: Mutex<Logins>,
    /// Permits of WebSockets that have not sent the secret of their session.
    pub(super) unauthenticated_permits: Arc<Semaphore>,
    /// Permits of streams of live updates.
    live_permits: Arc<Semaphore>,
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
            return Err(api_error(ErrorCode::InvalidValue, "listen", text));
        };
        let token =
            config.token_file.as_ref().map(|file| Token::load(file, "console", "token_file"));
        Ok(Self {
            address,
            token: token.transpose()?,
            logins: Mutex::default(),
            unauthenticated_permits: Arc::new(Semaphore::new(UNAUTHENTICATED_CONNECTIONS_MAX)),
            live_permits: Arc::new(Semaphore::new(LIVE_STREAMS_MAX)),
        })
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
    pub async fn bind(&self) -> Result<TcpListener, ApiError> {
        TcpListener::bind(self.address).await.map_err(|error| self.bind_error(&error))
    }

    fn bind_error(&self, error: &std::io::Error) -> ApiError {
        let remedy = remedy::listener_error_remedy(error, "console");
        let text = format!("cannot listen on {}: {error}; {remedy}", self.address);
        api_error(ErrorCode::HostError, "listen", text)
    }

    /// Creates a code for one login within `CODE_SPAN`.
    ///
    /// # Errors
    /// The system cannot provide random bytes.
    pub fn new_login(&self) -> Result<ConsoleLogin, ApiError> {
        let code = self.logins().new_code(Instant::now()).map_err(|error| {
            let text = format!("the system returned no random bytes: {error}; retry");
            ApiError::new(ErrorCode::HostError, text).with_resource("console")
        })?;
        let url = format!("http://{}/#/login?code={code}", self.address);
        Ok(ConsoleLogin { url, valid_s: CODE_SPAN.as_secs() })
    }

    /// Acquires a permit for a stream of live updates.
    ///
    /// # Errors
    /// [`LIVE_STREAMS_MAX`] streams exist already.
    pub(super) fn live_permit(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        self.live_permits.clone().try_acquire_owned().map_err(|_| {
            let text = format!(
                "{LIVE_STREAMS_MAX} pages already receive live updates, the most possible; close \
                 one of them, and retry"
            );
            ApiError::new(ErrorCode::Conflict, text).with_resource("console")
        })
    }

    pub(super) fn logins(&self) -> MutexGuard<'_, Logins> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the name of the session cookie. It contains the port, since browsers share cookies
    /// between ports.
    pub(super) fn cookie_name(&self) -> String {
        format!("suimon-session-{}", self.address.port())
    }
}

/// Console whose listener is in service. Empty without `[console]`, and until the listener can be
/// used.
#[derive(Clone, Default)]
pub struct ConsoleInService(Arc<OnceLock<Arc<Console>>>);

impl ConsoleInService {
    /// Sets the console, when its listener comes into service. Later calls have no effect.
    pub fn set(&self, console: &Arc<Console>) {
        let _ = self.0.set(Arc::clone(console));
    }

    /// Returns the console, if its listener is in service.
    pub(crate) fn console(&self) -> Option<&Console> {
        self.0.get().map(AsRef::as_ref)
    }
}

fn api_error(code: ErrorCode, field: &str, text: String) -> ApiError {
    ApiError::new(code, text).with_resource("console").with_field(field)
}
