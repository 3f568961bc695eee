//! The kernel: what happens when, what is drawn, what is written down, and who complains.
//!
//! A run is one thread and one queue of events. Events happen in the order of their time, and
//! of two at the same time the one that was planned first happens first. All chance comes from
//! [`Dice`], of which each part of a model has its own: what one draws does not change what
//! another gets. So the same scenario with the same seed gives the same trace, bit for bit.
//!
//! A model says what happens as facts. [`Witness`] writes each down and hands it to checkers,
//! which know what was promised and nothing of how a policy keeps it.

mod agenda;
mod dice;
mod trace;
mod witness;

pub(crate) use agenda::Agenda;
pub(crate) use dice::Dice;
pub(crate) use trace::{Note, Trace};
pub(crate) use witness::{Checker, Complaint, Complaints, Witness};

/// Nanoseconds of a second.
pub(crate) const SECOND: u64 = 1_000_000_000;
