//! Power plans: applies the configured plan to the host's CPUs and restores previous settings.
//!
//! The policy `suimon-power` decides the settings of a plan and the order of writes. This module
//! writes them. Before a setting is written, its previous value is recorded in the state store; the
//! record is deleted when that value is restored. Settings are restored when the plan is removed,
//! when the daemon ends, when the next daemon starts without a plan, and by [`restore_power`] if no
//! daemon starts.
//!
//! - [`spec`]: conversion of the configuration. [`records`]: recorded settings.
//! - [`keeper`]: writes and restores settings. [`table`]: the node's state and its use by the
//!   control thread.
//! - [`status`]: observed state. [`told`]: events.
//!
//! A plan is desired state: a change of it succeeds on any host. The status reports settings that
//! the host does not support.

mod keeper;
mod records;
mod spec;
mod status;
mod table;
mod told;

pub use keeper::{PowerRestoration, restore_power};
pub(crate) use spec::{data_plane, water_marks};
pub(crate) use table::PowerTable;

#[cfg(test)]
mod tests;
