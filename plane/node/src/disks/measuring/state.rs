//! Store that is being measured.

use suimon_contract::StoreConfig;

/// Store being measured, for checks of other requests.
#[derive(Clone, Debug)]
pub(crate) struct StoreInMeasurement {
    pub(super) operation_id: u64,
    pub(super) store: StoreConfig,
}
