//! Measured capacities of all stores.

use std::sync::{Arc, PoisonError};

use suimon_contract::{HostConfig, Name};

use super::{MeasuredStore, MeasuredStores};
use crate::disks::Disks;
use crate::disks::records::clear_measurement;
use crate::state::StoreChange;

impl Disks {
    pub(crate) fn measurements(&self) -> Arc<MeasuredStores> {
        self.measured.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_measurements(&self, measured: MeasuredStores) {
        *self.measured.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(measured);
    }

    pub(crate) fn set_measurement(&self, store: &Name, measured: MeasuredStore) {
        let mut measurements = MeasuredStores::clone(&self.measurements());
        measurements.insert(store.clone(), measured);
        self.set_measurements(measurements);
    }

    /// Returns the deletions of records of stores that are absent from the configuration.
    pub(crate) fn removed_store_record_changes(&self, config: &HostConfig) -> Vec<StoreChange> {
        self.unconfigured_measurements(config).iter().map(clear_measurement).collect()
    }

    /// Returns measured stores that are absent from the configuration.
    fn unconfigured_measurements(&self, config: &HostConfig) -> Vec<Name> {
        let is_removed = |name: &&Name| config.stores.iter().all(|store| store.name != **name);
        self.measurements().keys().filter(is_removed).cloned().collect()
    }

    pub(crate) fn remove_unconfigured_measurements(&self, config: &HostConfig) {
        let removed = self.unconfigured_measurements(config);
        if !removed.is_empty() {
            let mut measured = MeasuredStores::clone(&self.measurements());
            measured.retain(|name, _| !removed.contains(name));
            self.set_measurements(measured);
        }
    }
}
