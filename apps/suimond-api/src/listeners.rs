//! TCP listeners of the API and of the console.
//!
//! At a first start, a listener that cannot be used ends the daemon. Later, the daemon works without
//! it, reports it by an event, and tries again: NICs and disks of VMs do not depend on a listener,
//! and its address may belong to a device that is configured after the start of the daemon.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use suimon_contract::{ApiConfig, ApiError, ConsoleConfig, ErrorCode};
use suimon_node::Node;

use crate::access::AccessFailures;
use crate::api::Notifications;
use crate::console::Console;
use crate::server::{TlsListener, serve};
use crate::tcp_api::{TcpApi, Tokens, guarded};

/// Interval of attempts to listen.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Records the settings of the API listener and the files that they name. Called before they are read,
/// also at later attempts. The returned function is called when the listener uses them.
pub type ApiSnapshot = Arc<dyn Fn(&ApiConfig) -> Box<dyn FnOnce() + Send> + Send + Sync>;

/// Starts the TCP listeners.
pub struct Listeners {
    /// Node to which failed listeners are reported.
    pub node: Arc<Node>,
    /// True if the daemon had no stored state.
    pub is_first_start: bool,
    /// Records the settings that the API listener uses.
    pub snapshot: ApiSnapshot,
}

impl Listeners {
    /// Loads `[console]`. Returns `None` if it is not configured or cannot be used.
    ///
    /// # Errors
    /// It cannot be used, at the first start.
    pub fn load_console(
        &self,
        config: Option<&ConsoleConfig>,
    ) -> Result<Option<Console>, Vec<ApiError>> {
        match config.map(Console::load).transpose() {
            Err(error) => self.report(error, false).map(|()| None),
            Ok(console) => Ok(console),
        }
    }

    /// Serves the API over TCP, in tasks of their own.
    ///
    /// # Errors
    /// The listener cannot be used, at the first start.
    pub async fn serve_api(
        &self,
        config: ApiConfig,
        router: Router,
        failures: AccessFailures,
        notifications: Notifications,
    ) -> Result<(), Vec<ApiError>> {
        let first = match listen(config, Arc::clone(&self.snapshot)).await {
            Ok(bound) => Some(bound),
            Err(error) => self.report(error, true).map(|()| None)?,
        };
        let (node, snapshot) = (Arc::clone(&self.node), Arc::clone(&self.snapshot));
        tokio::spawn(async move {
            let bound = match first {
                Some(bound) => Some(bound),
                // The configuration may have been corrected, or removed.
                None => retry(|| Some(listen(node.config().api?, Arc::clone(&snapshot)))).await,
            };
            if let Some((listener, tokens)) = bound {
                serve(listener, guarded(router, tokens, failures), notifications).await;
            }
        });
        Ok(())
    }

    /// Serves the console, in tasks of their own.
    ///
    /// # Errors
    /// The listener cannot be used, at the first start.
    pub async fn serve_console(
        &self,
        console: Arc<Console>,
        page: Router,
        notifications: Notifications,
    ) -> Result<(), Vec<ApiError>> {
        let first = match console.bind().await {
            Ok(listener) => Some(listener),
            Err(error) => self.report(error, true).map(|()| None)?,
        };
        let node = Arc::clone(&self.node);
        tokio::spawn(async move {
            let listener = match first {
                Some(listener) => Some(listener),
                None => retry(|| node.config().console.map(|_| console.bind())).await,
            };
            if let Some(listener) = listener {
                serve(listener, page, notifications).await;
            }
        });
        Ok(())
    }

    /// Reports a listener that cannot be used; at the first start, returns the error instead.
    fn report(&self, error: ApiError, is_retried: bool) -> Result<(), Vec<ApiError>> {
        if self.is_first_start {
            return Err(vec![error]);
        }
        tracing::error!("{error}");
        self.node.report_listener_failed(&error, is_retried);
        Ok(())
    }
}

/// Loads the files that `[api]` names, and listens.
async fn listen(
    config: ApiConfig,
    snapshot: ApiSnapshot,
) -> Result<(TlsListener, Tokens), ApiError> {
    let load = move || {
        let record = snapshot(&config);
        TcpApi::load(&config).map(|api| (api, record))
    };
    let loaded = tokio::task::spawn_blocking(load).await;
    let failed = |error| ApiError::new(ErrorCode::Internal, format!("loading failed: {error}"));
    let (api, record) = loaded.unwrap_or_else(|error| Err(failed(error)))?;
    let bound = api.bind().await?;
    record();
    Ok(bound)
}

/// Repeats `listen` until it succeeds. Returns `None` when it returns `None`, because the listener
/// is not configured any more.
async fn retry<T, F>(mut listen: impl FnMut() -> Option<F>) -> Option<T>
where
    F: Future<Output = Result<T, ApiError>>,
{
    let mut reason = String::new();
    loop {
        tokio::time::sleep(RETRY_INTERVAL).await;
        match listen()?.await {
            Ok(bound) => {
                tracing::info!("a TCP listener that had failed is in service");
                return Some(bound);
            }
            Err(error) if error.to_string() != reason => {
                reason = error.to_string();
                tracing::error!("{error}");
            }
            Err(_) => {}
        }
    }
}
