//! Capacity of a store in the configuration.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Value of `capacity_iops` of a store: a number, or the word `measure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = StoreCapability)]
pub enum StoreCapacity {
    /// Capacity in normalised operations per second, declared by the operator.
    Declared(u64),
    /// Result of the last `suimon store measure`; unknown before the first.
    Measured(MeasureKeyword),
}

/// Word that selects the measured capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[serde(rename = "MeasureWord")]
#[schema(as = MeasureWord)]
pub enum MeasureKeyword {
    /// The capacity is measured at the operator's request.
    Measure,
}

impl StoreCapacity {
    /// The word `measure`.
    pub const MEASURED: Self = Self::Measured(MeasureKeyword::Measure);

    /// Returns the declared capacity in normalised operations per second, if declared.
    pub const fn declared_iops(self) -> Option<u64> {
        match self {
            Self::Declared(iops) => Some(iops),
            Self::Measured(_) => None,
        }
    }
}
