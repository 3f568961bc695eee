//! Power plans, as values and pure functions.
//!
//! A [`PowerSpec`] is a plan and what the user asks for beside it; a [`Machine`] is what
//! the kernel offers and how it stands. [`decide`] says which settings the plan asks for
//! and what cannot be had and why; [`reconcile`] says what is to be written, in which
//! order, what has to be remembered before that, and what goes back to what it was.
//! [`EnergyMeter`] makes energy and power of counters that wrap.
//!
//! What it does not do: it reads and writes no file. [`SettingId::file`] names the file of
//! a setting below sysfs; whoever owns the host reads and writes it.
//!
//! Lifecycle: read the machine, decide, reconcile; keep [`Reconciliation::records`]
//! durably; write; read again. What turbo may do changes which frequencies there are, so
//! this is repeated until nothing is left to write, three times at most. To restore,
//! reconcile with nothing wanted.
//!
//! Invariants
//! - Only values that the machine offers are written, and at no point is a minimum
//!   frequency above the maximum.
//! - A setting is written only if its value before is in a record; reconciling with
//!   nothing wanted writes that value, unless somebody else has written another since.
//! - What another has changed is left alone until the user sets a plan again.
//! - Integer arithmetic; nothing here depends on an order that is not given.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod decide;
mod energy;
mod machine;
mod plan;
mod reconcile;
mod setting;
mod why;

pub use decide::{Target, Wanted, Whom, decide};
pub use energy::{EnergyMeter, ZoneEnergy, ZoneReading};
pub use machine::{Cpu, FrequencyPolicy, IdleState, Machine, Turbo, TurboFile};
pub use plan::{DataPlaneShare, PowerPlan, PowerSpec};
pub use reconcile::{Assert, Foreign, Reconciliation, Record, Records, reconcile};
pub use setting::{SettingId, SettingKind};
pub use why::Why;
