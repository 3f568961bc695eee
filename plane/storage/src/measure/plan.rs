//! Parameters of a measurement.

use core::time::Duration;

use suimon_storage_qos::StoreSpec;

/// Parameters of a measurement of a store.
#[derive(Clone, Debug)]
pub struct MeasurePlan {
    /// Specification of the store: normalisation of operations and queue depths.
    pub spec: StoreSpec,
    /// Duration of counting for each read/write mix. A warm-up of one third of it precedes.
    pub pattern_duration: Duration,
    /// Seed of the pseudo-random offsets.
    pub seed: u64,
}
