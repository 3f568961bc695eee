//! Scenarios: reading, validation and the interface to each kind.
//!
//! Unknown keys and invalid values are rejected with the key's name and the accepted values.

use std::fmt;

use anyhow::Result;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::scenario_result::{Options, ScenarioResult};

/// Scenario of one kind, read from a scenario file.
pub trait Scenario {
    /// Returns the name of the scenario.
    fn name(&self) -> &str;

    /// Returns the seed of the scenario, the default.
    fn seed(&self) -> u64;

    /// Returns true if the scenario defines swarm runs.
    fn has_swarm(&self) -> bool;

    /// Reports keys of the scenario with invalid values.
    fn check(&self, invalid: &mut InvalidKeys);

    /// Runs the scenario with the production policies.
    ///
    /// # Errors
    /// A policy rejects the configuration of the scenario, or a swarm run is requested and not
    /// defined.
    fn run(&self, options: Options) -> Result<ScenarioResult>;
}

/// Parses and validates a scenario of the kind `S`.
///
/// # Errors
/// Every fault, by key.
pub fn read<S: Scenario + DeserializeOwned>(text: &str) -> Result<S, InvalidScenario> {
    let scenario: S = toml::from_str(text)?;
    let mut invalid = InvalidKeys::default();
    scenario.check(&mut invalid);
    invalid.into_result()?;
    Ok(scenario)
}

/// Reason for rejecting a scenario.
#[derive(Debug, Error)]
pub enum InvalidScenario {
    /// Invalid TOML, a missing or unknown key, or a value of the wrong type.
    #[error("{0}")]
    Text(#[from] toml::de::Error),
    /// Some values are invalid.
    #[error("{}", .0.iter().map(InvalidKey::to_string).collect::<Vec<_>>().join("\n"))]
    Values(Vec<InvalidKey>),
}

/// Key with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidKey {
    /// Key as in the file: `array.pairs`, `step 2.set 1.disks`.
    pub key: String,
    /// Reason for which the value is invalid, and the accepted values.
    pub reason: String,
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}

/// Collects the invalid values of a scenario file.
#[derive(Debug, Default)]
pub struct InvalidKeys(Vec<InvalidKey>);

impl InvalidKeys {
    /// Reports a key with an invalid value.
    pub fn add(&mut self, key: impl Into<String>, reason: impl Into<String>) {
        self.0.push(InvalidKey { key: key.into(), reason: reason.into() });
    }

    /// Reports a number outside of the range from `low` to `high`.
    pub fn check_range(&mut self, key: impl Into<String>, value: u64, low: u64, high: u64) {
        if value < low || value > high {
            self.add(key, format!("{value} is outside of {low} to {high}"));
        }
    }

    fn into_result(self) -> Result<(), InvalidScenario> {
        if self.0.is_empty() { Ok(()) } else { Err(InvalidScenario::Values(self.0)) }
    }
}
