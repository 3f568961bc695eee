//! State of the console's own endpoints.

use std::sync::Arc;

use axum::Router;

use crate::api::ApiState;
use crate::console::listener::Console;

/// State available to the console's own endpoints.
#[derive(Clone)]
pub(crate) struct ConsoleState {
    pub(crate) console: Arc<Console>,
    pub(crate) api: ApiState,
    /// Endpoints of the REST API.
    pub(crate) endpoints: Router,
}
