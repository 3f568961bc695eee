//! How somebody logs in to the web console.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An address that logs a browser in to the console.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConsoleLogin {
    /// To be opened in a browser on the host, once.
    pub url: String,
    /// How long it can be used, in seconds from now.
    pub valid_s: u64,
}
