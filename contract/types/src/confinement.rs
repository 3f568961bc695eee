//! What the daemon and its threads have given up, as the API shows it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How far the daemon is confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfinementMode {
    /// All layers are in place.
    Full,
    /// The layers are in place as far as the kernel and the start allow; `lacking`
    /// says what is missing.
    Partial,
    /// Nothing is confined, because the daemon was started so.
    #[default]
    Off,
}

impl ConfinementMode {
    /// The mode as the API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::Off => "off",
        }
    }
}

/// Confinement of the daemon: what its threads can no longer ask of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfinementStatus {
    /// In one word.
    pub mode: ConfinementMode,
    /// What is missing and what follows from that; empty if nothing is.
    pub lacking: Vec<String>,
    /// What is in effect for each kind of thread there has been.
    pub layers: Vec<ConfinementLayer>,
    /// System calls refused since the daemon started. A daemon without a defect,
    /// and in nobody else's hand, has none.
    pub refused_calls: u64,
}

/// Confinement of one kind of thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfinementLayer {
    /// `process` (all threads), `processors`, `front-ends` (threads that read
    /// VMMs' messages), or `nbd-servers` (threads that take NBD clients in, and carry
    /// their TLS).
    pub threads: String,
    /// Capabilities that are left.
    pub capabilities: Vec<String>,
    /// Which system calls work, like `44 allowed`.
    pub system_calls: String,
    /// What Landlock does, like `full, version 7`.
    pub landlock: String,
}

impl ConfinementLayer {
    /// What is in effect, in one line for people.
    pub fn in_words(&self) -> String {
        let capabilities = match self.capabilities.as_slice() {
            [] => "none".to_owned(),
            some => some.join(" "),
        };
        let Self { system_calls, landlock, .. } = self;
        format!("capabilities {capabilities}; system calls {system_calls}; Landlock {landlock}")
    }
}
