//! Privileges that the daemon and its threads have dropped, as reported by the API.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Extent of the daemon's confinement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfinementMode {
    /// Every layer is in effect.
    Full,
    /// The kernel or the way the daemon was started does not support every layer; `missing` lists
    /// the missing ones.
    Partial,
    /// Confinement is disabled by the daemon's command line.
    #[default]
    Off,
}

impl ConfinementMode {
    /// Returns the mode as serialized by the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::Off => "off",
        }
    }
}

/// Confinement of the daemon: restrictions on the system calls, capabilities and files of its
/// threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfinementStatus {
    /// Extent of the daemon's confinement.
    pub mode: ConfinementMode,
    /// Missing layers with their consequences; empty if none is missing.
    pub missing: Vec<String>,
    /// Restrictions in effect for each kind of thread started so far.
    #[serde(rename = "layers")]
    pub thread_confinements: Vec<ThreadConfinement>,
    /// System calls refused since the daemon started. Any value above 0 indicates a defect or a
    /// compromised daemon.
    pub refused_calls: u64,
}

/// Confinement of one kind of thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "ConfinementLayer")]
#[schema(as = ConfinementLayer)]
pub struct ThreadConfinement {
    /// Kind of thread: `process` (all threads), `workers` (workers), `front-ends` (threads that
    /// read messages of VMMs), or `nbd-servers` (threads that negotiate with NBD clients and carry
    /// their TLS).
    #[serde(rename = "threads")]
    pub thread_kind: String,
    /// Capabilities that the threads keep.
    pub capabilities: Vec<String>,
    /// Permitted system calls, such as `44 allowed`.
    pub system_calls: String,
    /// State of Landlock, such as `full, version 7`.
    pub landlock: String,
}

impl ThreadConfinement {
    /// Returns the restrictions in effect as one line of text.
    pub fn summary(&self) -> String {
        let capabilities = match self.capabilities.as_slice() {
            [] => "none".to_owned(),
            some => some.join(" "),
        };
        let Self { system_calls, landlock, .. } = self;
        format!("capabilities {capabilities}; system calls {system_calls}; Landlock {landlock}")
    }
}
