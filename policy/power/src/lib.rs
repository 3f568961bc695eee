//! Power plans as values and pure functions.
//!
//! A [`PowerSpec`] is a plan with the operator's overrides; a [`HostPowerSettings`] is the set of
//! kernel settings with their current values. [`decide`] returns the settings that the plan
//! requires, with reasons for those not available. [`reconcile`] returns the writes in their order,
//! the records to persist before, and the settings to restore. [`EnergyMeter`] computes energy and
//! power from wrapping counters.
//!
//! This crate reads and writes no files. [`SettingId::file`] names the file of a setting below
//! sysfs, which the host's owner reads and writes.
//!
//! Lifecycle: read the machine, decide, reconcile; persist [`Reconciliation::records`] durably;
//! write; read again. Turbo changes the available frequencies, so this is repeated until no writes
//! are left, at most three times. To restore all settings, reconcile with an empty list of wanted
//! settings.
//!
//! Invariants
//! - Only values that the machine offers are written, and a minimum frequency never exceeds the
//!   maximum.
//! - A setting is written only if its previous value is in a record. Reconciling with an empty list
//!   restores that value, unless an external agent has written another since.
//! - External changes are left alone until the operator sets a plan again.
//! - Arithmetic is integer, and results do not depend on an unspecified order.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod decide;
mod energy;
mod host_power_settings;
mod plan;
mod reconcile;
mod setting;
mod unavailable;

pub use decide::{PlanRequirement, RequiredSetting, Scope, plan_requirements};
pub use energy::{EnergyMeter, ZoneEnergy, ZoneReading};
pub use host_power_settings::{Cpu, FrequencyPolicy, HostPowerSettings, IdleState, Turbo};
pub use plan::{DataPlaneSettings, PowerPlan, PowerSpec};
pub use reconcile::{
    ExternalChange, OverwritePolicy, Reconciliation, SettingRecord, SettingRecords, reconcile,
};
pub use setting::{SettingId, SettingKind, TurboFile};
pub use unavailable::UnavailableReason;
