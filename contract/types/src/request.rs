//! Bodies of requests that are not configuration itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::HostConfig;

/// `POST /1.0/apply`: make the host be as described. Exactly one of `toml` and
/// `config` is given; with `toml`, errors name the line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// The host file as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toml: Option<String>,
    /// Its name, for errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The host file as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<HostConfig>,
}

/// `POST /1.0/queues/{port}/{rx|tx}/{index}/move`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveQueueRequest {
    /// The processor that is to own it.
    pub processor: u16,
}
