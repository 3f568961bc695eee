//! Power management: applies the power plan to the host's CPUs and restores the former settings.
//!
//! `suimon-power` determines the settings of a plan and the order of writes. This module carries
//! out the writes. Before a setting is written, its former value is recorded in the state store;
//! the record is deleted when the former value is restored. Settings are restored when the plan
//! ends, when the daemon ends, when the next daemon starts without a plan, and by [`restore_power`]
//! if no daemon runs.
//!
//! - [`spec`]: settings that a configuration requires. [`records`]: entries of the state store.
//! - [`settings_writer`]: writes and restores settings. [`table`]: power state of the node and its
//!   callers.
//! - [`status`]: status in the API's types. [`events`]: events.
//!
//! A change of the plan never fails because of unsupported settings. They remain desired, and the
//! status reports the deviation.

mod effect;
mod events;
mod records;
mod settings_writer;
mod spec;
mod status;
mod table;

pub use settings_writer::{PowerRestoration, restore_power};
pub(crate) use spec::{data_plane, water_marks};
pub(crate) use table::PowerTable;

#[cfg(test)]
mod tests;
