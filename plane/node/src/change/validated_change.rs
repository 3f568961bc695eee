//! Validated change of the desired state.

use std::time::Instant;

use suimon_contract::{ApiError, Plan};

use super::edit::ChangeOptions;
use crate::disks::{DiskImages, RequiredDisks};
use crate::ports::RequiredPorts;
use crate::state::StoredState;

/// Validated change, ready to be carried out.
#[derive(Clone, Debug)]
pub(crate) struct ValidatedChange {
    /// Desired state after the change.
    pub(crate) state: StoredState,
    /// Devices that the new state requires.
    pub(crate) required: RequiredPorts,
    /// Disks that the new state requires.
    pub(crate) disks: RequiredDisks,
    /// Images of the disks before the change, and the missing image that the change creates on
    /// request.
    pub(crate) images: DiskImages,
    /// Plan of the change, for display.
    pub(crate) plan: Plan,
    /// Deadline of queries of stores while the plan is made, so that a blocked store delays the
    /// plan only by a bounded time.
    pub(crate) query_deadline: Instant,
    /// Minimums that exceed the capacity of their stores. Empty unless the change is forced.
    pub(crate) forced_errors: Vec<ApiError>,
    /// Options with which the change was requested.
    pub(crate) options: ChangeOptions,
}
