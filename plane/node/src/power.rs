//! Power: the host's CPUs follow the plan, and are put back.
//!
//! What a plan asks for, and in which order it is written, is `suimon-power`'s. Here it is
//! carried out and remembered: before a setting is written, its value before is in the state
//! store; it leaves the store when that value is back. So it comes back when the plan ends,
//! when the daemon ends, when the next one starts without a plan, and by [`restore_power`]
//! where none does.
//!
//! - [`spec`]: what a configuration asks for. [`records`]: what is remembered.
//! - [`keeper`]: carries out. [`table`]: the node's, and who calls it when.
//! - [`status`]: how it stands. [`told`]: the events.
//!
//! A change of the plan never fails because of what a host does not have: it is desired
//! state, and status says what of it is not so.

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
