//! Scenario files.
//!
//! Files are in TOML; `kind` selects the models. Unknown keys and invalid values are rejected with
//! the key's name and the accepted values.

use std::fmt;

use serde::Deserialize;
use thiserror::Error;

use crate::fleet::FleetScenario;
use crate::host::HostScenario;
use crate::network::NetworkScenario;
use crate::storage::StorageScenario;

/// Validated scenario of any kind.
#[derive(Clone, Debug)]
pub(crate) enum Scenario {
    /// Disks on an array with Storage QoS.
    Storage(Box<StorageScenario>),
    /// Workers, a team of NICs, and VMs.
    Network(Box<NetworkScenario>),
    /// Many nodes that share many stores.
    Fleet(Box<FleetScenario>),
    /// CPUs of a host, its VMs and their load.
    Host(Box<HostScenario>),
}

/// Key with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// Key as in the file: `array.pairs`, `step 2.set 1.disks`.
    pub(crate) key: String,
    /// Reason, and accepted values.
    pub(crate) why: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.why)
    }
}

/// Reason for rejecting a scenario.
#[derive(Debug, Error)]
pub(crate) enum Refused {
    /// Invalid TOML, a missing or unknown key, or a value of the wrong type.
    #[error("{0}")]
    Text(#[from] toml::de::Error),
    /// The kind of the scenario is unknown.
    #[error(
        "kind: there is no \"{0}\"; valid are \"storage\", \"network\", \"fleet\" and \"host\""
    )]
    Kind(String),
    /// Some values are invalid.
    #[error("{}", .0.iter().map(Wrong::to_string).collect::<Vec<_>>().join("\n"))]
    Values(Vec<Wrong>),
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

impl Scenario {
    /// Parses and validates a scenario.
    ///
    /// # Errors
    /// Every fault, by key.
    pub(crate) fn read(text: &str) -> Result<Self, Refused> {
        let Kind { kind } = toml::from_str(text)?;
        match kind.as_str() {
            "storage" => {
                let scenario: StorageScenario = toml::from_str(text)?;
                let mut wrong = Wrongs::default();
                scenario.check(&mut wrong);
                wrong.done()?;
                Ok(Self::Storage(Box::new(scenario)))
            }
            "network" => {
                let scenario: NetworkScenario = toml::from_str(text)?;
                let mut wrong = Wrongs::default();
                scenario.check(&mut wrong);
                wrong.done()?;
                Ok(Self::Network(Box::new(scenario)))
            }
            "fleet" => {
                let scenario: FleetScenario = toml::from_str(text)?;
                let mut wrong = Wrongs::default();
                scenario.check(&mut wrong);
                wrong.done()?;
                Ok(Self::Fleet(Box::new(scenario)))
            }
            "host" => {
                let scenario: HostScenario = toml::from_str(text)?;
                let mut wrong = Wrongs::default();
                scenario.check(&mut wrong);
                wrong.done()?;
                Ok(Self::Host(Box::new(scenario)))
            }
            _ => Err(Refused::Kind(kind)),
        }
    }

    /// Returns the name of the scenario.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Storage(of) => &of.name,
            Self::Network(of) => &of.name,
            Self::Fleet(of) => &of.name,
            Self::Host(of) => &of.name,
        }
    }

    /// Returns the seed of the scenario, the default.
    pub(crate) fn seed(&self) -> u64 {
        match self {
            Self::Storage(of) => of.seed,
            Self::Network(of) => of.seed,
            Self::Fleet(of) => of.seed,
            Self::Host(of) => of.seed,
        }
    }

    /// Returns true if the scenario defines swarm runs.
    pub(crate) fn has_swarm(&self) -> bool {
        match self {
            Self::Storage(of) => of.swarm.is_some(),
            Self::Network(of) => of.swarm.is_some(),
            Self::Fleet(_) => true,
            Self::Host(_) => false,
        }
    }
}

/// Collection of invalid values.
#[derive(Debug, Default)]
pub(crate) struct Wrongs(Vec<Wrong>);

impl Wrongs {
    /// Reports a key with an invalid value.
    pub(crate) fn add(&mut self, key: impl Into<String>, why: impl Into<String>) {
        self.0.push(Wrong { key: key.into(), why: why.into() });
    }

    /// Reports a number outside of the range from `low` to `high`.
    pub(crate) fn within(&mut self, key: impl Into<String>, of: u64, low: u64, high: u64) {
        if of < low || of > high {
            self.add(key, format!("{of} is outside of {low} to {high}"));
        }
    }

    fn done(self) -> Result<(), Refused> {
        if self.0.is_empty() { Ok(()) } else { Err(Refused::Values(self.0)) }
    }
}
