//! Parameters of a measurement.

use core::time::Duration;

use suimon_storage_qos::StoreSpec;

/// Parameters of a measurement.
#[derive(Clone, Debug)]
pub struct MeasurePlan {
    /// Specification of the store: normalization and queue depths.
    pub spec: StoreSpec,
    /// Duration of counting per pattern, after a warm-up of one third of it.
    pub each: Duration,
    /// Seed of the random offsets.
    pub seed: u64,
}
