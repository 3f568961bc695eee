//! Measurements of the capacity of stores.
//!
//! Each measurement has a thread, because it blocks on the device and the control thread must not.
//! A pass-through disk is out of service while its device is measured.

mod control;
pub(super) mod state;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use suimon_contract::{ApiError, StoreConfig};
use suimon_storage::measure::MeasurementResult;

use super::entry::DiskEntry;
use crate::operations::OperationHandle;

/// Measurement of a store's capacity in progress.
pub(crate) struct RunningMeasurement {
    store: StoreConfig,
    seconds: u64,
    /// Disks out of service for the measurement. True if the disk had failed before.
    disks: Vec<(Arc<DiskEntry>, bool)>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Ended>,
}

struct Ended {
    operation: OperationHandle,
    result: Result<MeasurementResult, ApiError>,
}
