//! Login to the web console.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Single-use address that logs a browser in to the console.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConsoleLogin {
    /// URL to open in a browser on the host; valid once.
    pub url: String,
    /// Remaining validity of the URL in seconds.
    pub valid_s: u64,
}
