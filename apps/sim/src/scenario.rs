//! Scenario files.
//!
//! TOML; `kind` says which models a scenario is about. A key that is not known is refused, and
//! so is a value that makes no sense, with the key's name and what would be accepted.

use std::fmt;

use serde::Deserialize;
use thiserror::Error;

use crate::fleet::FleetScenario;
use crate::host::HostScenario;
use crate::network::NetworkScenario;
use crate::storage::StorageScenario;

/// A scenario of any kind.
#[derive(Clone, Debug)]
pub(crate) enum Scenario {
    /// Disks on an array.
    Storage(Box<StorageScenario>),
    /// Processors, a team of NICs, and VMs.
    Network(Box<NetworkScenario>),
    /// Many nodes that share many stores.
    Fleet(Box<FleetScenario>),
    /// A host's processors, its VMs and what is asked of them.
    Host(Box<HostScenario>),
}

/// A key whose value makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// As in the file: `array.pairs`, `step 2.set 1.disks`.
    pub(crate) key: String,
    /// What is wrong, and what would be accepted.
    pub(crate) why: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.why)
    }
}

/// Why a scenario is not run.
#[derive(Debug, Error)]
pub(crate) enum Refused {
    /// It is not TOML, a key is missing or not known, or a value is of another kind.
    #[error("{0}")]
    Text(#[from] toml::de::Error),
    /// There is no such kind.
    #[error(
        "kind: there is no \"{0}\"; there are \"storage\", \"network\", \"fleet\" and \"host\""
    )]
    Kind(String),
    /// Values that make no sense.
    #[error("{}", .0.iter().map(Wrong::to_string).collect::<Vec<_>>().join("\n"))]
    Values(Vec<Wrong>),
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

impl Scenario {
    /// Reads a scenario's text.
    ///
    /// # Errors
    /// Everything that is wrong with it, by key.
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

    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Storage(of) => &of.name,
            Self::Network(of) => &of.name,
            Self::Fleet(of) => &of.name,
            Self::Host(of) => &of.name,
        }
    }

    /// The seed that it is run with unless another is named.
    pub(crate) fn seed(&self) -> u64 {
        match self {
            Self::Storage(of) => of.seed,
            Self::Network(of) => of.seed,
            Self::Fleet(of) => of.seed,
            Self::Host(of) => of.seed,
        }
    }

    /// Whether it says what a swarm may do.
    pub(crate) fn has_swarm(&self) -> bool {
        match self {
            Self::Storage(of) => of.swarm.is_some(),
            Self::Network(of) => of.swarm.is_some(),
            Self::Fleet(_) => true,
            Self::Host(_) => false,
        }
    }
}

/// Collects what is wrong.
#[derive(Debug, Default)]
pub(crate) struct Wrongs(Vec<Wrong>);

impl Wrongs {
    /// Something is wrong with a key.
    pub(crate) fn add(&mut self, key: impl Into<String>, why: impl Into<String>) {
        self.0.push(Wrong { key: key.into(), why: why.into() });
    }

    /// Wants a number from `low` to `high`.
    pub(crate) fn within(&mut self, key: impl Into<String>, of: u64, low: u64, high: u64) {
        if of < low || of > high {
            self.add(key, format!("{of} is not from {low} to {high}"));
        }
    }

    fn done(self) -> Result<(), Refused> {
        if self.0.is_empty() { Ok(()) } else { Err(Refused::Values(self.0)) }
    }
}
