//! State shared by all handlers, and notification of streams.

use std::path::Path;
use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode};
use suimon_node::Node;
use suimond_lab::Lab;

use crate::access::AccessFailures;
use crate::console::listener::ConsoleInService;
use crate::http::ErrorResponse;
use crate::notifications::Notifications;

/// State available to every handler.
#[derive(Clone)]
pub struct ApiState {
    /// Node that the API controls.
    pub node: Arc<Node>,
    /// Notifications about events and operations of the node.
    pub notifications: Notifications,
    /// Web console, while its listener is in service.
    pub console: ConsoleInService,
    /// Access to the lab of the host.
    pub lab: Arc<Lab>,
    /// Requests with wrong credentials.
    pub failures: AccessFailures,
    /// Host file that the daemon applies at its start, if any.
    pub host_file: Option<Arc<Path>>,
}

impl ApiState {
    /// Runs a call of the node that may block on a thread for blocking calls.
    ///
    /// # Errors
    /// The error of the call; `internal` if it panicked.
    pub async fn call_blocking<T, E>(
        &self,
        call: impl FnOnce(&Node) -> Result<T, E> + Send + 'static,
    ) -> Result<T, ErrorResponse>
    where
        T: Send + 'static,
        E: Into<ErrorResponse> + Send + 'static,
    {
        let node = self.node.clone();
        match tokio::task::spawn_blocking(move || call(&node)).await {
            Ok(result) => result.map_err(Into::into),
            Err(error) => {
                let text =
                    format!("the daemon failed to process the request: {error}; see its log");
                Err(ApiError::new(ErrorCode::Internal, text).into())
            }
        }
    }

    /// Runs an infallible call of the node that may block on a thread for blocking calls.
    ///
    /// # Errors
    /// `internal` if the call panicked.
    pub async fn call_blocking_infallible<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, ErrorResponse> {
        self.call_blocking(move |node| Ok::<T, ErrorResponse>(call(node))).await
    }
}
