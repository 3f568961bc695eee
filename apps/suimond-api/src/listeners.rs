//! TCP listeners of the API and of the console.
//!
//! At the first start of the daemon, a listener that cannot be used ends the daemon. Later, the
//! daemon works without the listener, reports an event, and tries again: NICs and disks of VMs do
//! not depend on a listener, and its address may belong to a device that is configured after the
//! start of the daemon.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use suimon_contract::{ApiConfig, ApiError, ConsoleConfig, ErrorCode};
use suimon_node::Node;
use tokio::net::TcpListener;

use crate::access::AccessFailures;
use crate::console::{Console, ConsoleInService};
use crate::notifications::Notifications;
use crate::server::{TlsListener, serve};
use crate::tcp_api::{TcpApi, Tokens, with_token_check};

/// Interval of attempts to listen.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Section of the configuration with the settings of a TCP listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerSection {
    /// Section `[api]`.
    Api,
    /// Section `[console]`.
    Console,
}

/// Settings of a TCP listener; `None` if the configuration has no such section.
#[derive(Clone, Debug)]
pub enum ListenerSettings {
    /// Settings of the API listener.
    Api(Option<ApiConfig>),
    /// Settings of the console listener.
    Console(Option<ConsoleConfig>),
}

/// Record of the settings that the TCP listeners use, from which changes in the host file are found
/// that need a restart.
pub trait ListenerSettingsRecord: Send + Sync {
    /// Records that a listener has failed at the start. It is tried again with the settings in
    /// effect at each attempt.
    fn set_retried(&self, section: ListenerSection);

    /// Returns a function that records these settings and the current state of the files that they
    /// name. The caller calls this method before it reads the files, and the returned function when
    /// the listener uses the settings.
    fn prepare_record(&self, settings: ListenerSettings) -> Box<dyn FnOnce() + Send>;
}

/// Starter of the TCP listeners.
pub struct ListenerStarter {
    /// Node to which failed listeners are reported.
    pub node: Arc<Node>,
    /// True if the daemon had no stored state.
    pub is_first_start: bool,
    /// Record of the settings that the listeners use.
    pub settings_record: Arc<dyn ListenerSettingsRecord>,
}

impl ListenerStarter {
    /// Starts tasks that serve the API over TCP.
    ///
    /// # Errors
    /// The daemon is started for the first time, and the listener cannot be used.
    pub async fn serve_api(
        &self,
        config: ApiConfig,
        router: Router,
        failures: AccessFailures,
        notifications: Notifications,
    ) -> Result<(), Vec<ApiError>> {
        let first = listen(config, Arc::clone(&self.settings_record)).await;
        let first = self.started(ListenerSection::Api, first)?;
        let (node, record) = (Arc::clone(&self.node), Arc::clone(&self.settings_record));
        tokio::spawn(async move {
            let bound = match first {
                Some(bound) => Some(bound),
                // The listener has failed. The configuration may be corrected or removed until the
                // next attempt.
                None => retry(|| Some(listen(node.config().api?, Arc::clone(&record)))).await,
            };
            match bound {
                Some((listener, tokens)) => {
                    serve(listener, with_token_check(router, tokens, failures), notifications)
                        .await;
                }
                None => record.prepare_record(ListenerSettings::Api(None))(),
            }
        });
        Ok(())
    }

    /// Starts tasks that serve the console. `page` returns the service of a console.
    ///
    /// # Errors
    /// The daemon is started for the first time, and the listener cannot be used.
    pub async fn serve_console(
        &self,
        config: ConsoleConfig,
        in_service: ConsoleInService,
        page: impl FnOnce(Arc<Console>) -> Router + Send + 'static,
        notifications: Notifications,
    ) -> Result<(), Vec<ApiError>> {
        let first = listen_console(config, Arc::clone(&self.settings_record)).await;
        let first = self.started(ListenerSection::Console, first)?;
        if let Some((_, console)) = &first {
            in_service.set(console);
        }
        let (node, record) = (Arc::clone(&self.node), Arc::clone(&self.settings_record));
        tokio::spawn(async move {
            let bound = match first {
                Some(bound) => Some(bound),
                // The listener has failed. The configuration may be corrected or removed until the
                // next attempt.
                None => {
                    let listen =
                        || Some(listen_console(node.config().console?, Arc::clone(&record)));
                    retry(listen).await
                }
            };
            match bound {
                Some((listener, console)) => {
                    in_service.set(&console);
                    serve(listener, page(console), notifications).await;
                }
                None => record.prepare_record(ListenerSettings::Console(None))(),
            }
        });
        Ok(())
    }

    /// Returns the listener of the first attempt; `None` if the attempt failed, which is reported
    /// by an event.
    ///
    /// # Errors
    /// The attempt failed at the first start of the daemon.
    fn started<T>(
        &self,
        section: ListenerSection,
        first: Result<T, ApiError>,
    ) -> Result<Option<T>, Vec<ApiError>> {
        match first {
            Ok(listening) => Ok(Some(listening)),
            Err(error) if self.is_first_start => Err(vec![error]),
            Err(error) => {
                tracing::error!("{error}");
                self.settings_record.set_retried(section);
                self.node.report_listener_failed(&error);
                Ok(None)
            }
        }
    }
}

/// Loads the files that `[api]` names, and listens.
async fn listen(
    config: ApiConfig,
    record: Arc<dyn ListenerSettingsRecord>,
) -> Result<(TlsListener, Tokens), ApiError> {
    let load = move || {
        let commit = record.prepare_record(ListenerSettings::Api(Some(config.clone())));
        TcpApi::load(&config).map(|api| (api, commit))
    };
    let (api, commit) = on_blocking_thread(load).await?;
    let listening = api.bind().await?;
    commit();
    Ok(listening)
}

/// Loads the files that `[console]` names, and listens.
async fn listen_console(
    config: ConsoleConfig,
    record: Arc<dyn ListenerSettingsRecord>,
) -> Result<(TcpListener, Arc<Console>), ApiError> {
    let load = move || {
        let commit = record.prepare_record(ListenerSettings::Console(Some(config.clone())));
        Console::load(&config).map(|console| (Arc::new(console), commit))
    };
    let (console, commit) = on_blocking_thread(load).await?;
    let listener = console.bind().await?;
    commit();
    Ok((listener, console))
}

/// Runs a function that reads files on a thread for blocking calls.
async fn on_blocking_thread<T: Send + 'static>(
    load: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let failed = |error| ApiError::new(ErrorCode::Internal, format!("loading failed: {error}"));
    tokio::task::spawn_blocking(load).await.unwrap_or_else(|error| Err(failed(error)))
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
