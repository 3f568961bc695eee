//! Scenario files: `kind` selects the models.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use suimon_sim_host::{HostScenario, NetworkScenario};
use suimon_sim_kernel::{Scenario, read};
use suimon_sim_storage::{FleetScenario, StorageScenario};
use thiserror::Error;

/// Validated scenario of any kind.
#[derive(Clone, Debug)]
pub(crate) enum AnyScenario {
    /// Disks on an array with Storage QoS.
    Storage(Box<StorageScenario>),
    /// Workers, a team of NICs, and VMs.
    Network(Box<NetworkScenario>),
    /// Many nodes that share many stores.
    Fleet(Box<FleetScenario>),
    /// CPUs of a host, its VMs and their load.
    Host(Box<HostScenario>),
}

/// Reason for rejecting a scenario.
#[derive(Debug, Error)]
pub(crate) enum ScenarioError {
    /// The content of the file is invalid.
    #[error(transparent)]
    Content(#[from] suimon_sim_kernel::InvalidScenario),
    /// The kind of the scenario is unknown.
    #[error(
        "kind: there is no \"{0}\"; valid are \"storage\", \"network\", \"fleet\" and \"host\""
    )]
    Kind(String),
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

impl AnyScenario {
    /// Reads and validates a scenario's file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
        let rejection = || format!("{} is rejected", path.display());
        Self::parse(&text).with_context(rejection)
    }

    /// Parses and validates a scenario.
    ///
    /// # Errors
    /// Every fault, by key.
    fn parse(text: &str) -> Result<Self, ScenarioError> {
        let Kind { kind } =
            toml::from_str(text).map_err(suimon_sim_kernel::InvalidScenario::from)?;
        Ok(match kind.as_str() {
            "storage" => Self::Storage(Box::new(read(text)?)),
            "network" => Self::Network(Box::new(read(text)?)),
            "fleet" => Self::Fleet(Box::new(read(text)?)),
            "host" => Self::Host(Box::new(read(text)?)),
            _ => return Err(ScenarioError::Kind(kind)),
        })
    }

    /// Returns the scenario as the interface that all kinds have in common.
    pub(crate) fn model(&self) -> &(dyn Scenario + Sync) {
        match self {
            Self::Storage(storage) => &**storage,
            Self::Network(network) => &**network,
            Self::Fleet(fleet) => &**fleet,
            Self::Host(host) => &**host,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kind_is_rejected_with_the_valid_ones() {
        let text = include_str!("../scenarios/qos-host.toml");
        assert!(matches!(AnyScenario::parse(text), Ok(AnyScenario::Storage(_))));
        let error = AnyScenario::parse(&text.replacen("\"storage\"", "\"weather\"", 1));
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("kind: there is no \"weather\"; valid are \"storage\""),
            "{error}"
        );
    }
}
