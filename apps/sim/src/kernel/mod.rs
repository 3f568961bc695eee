//! Simulation kernel: events, random numbers, trace and checkers.
//!
//! A run consists of one thread and one queue of events. Events occur in order of their time, and
//! events with the same time in the order in which they were planned. Random numbers come from
//! [`Dice`]; each part of a model has its own stream, so that the draws of one part do not affect
//! another. The same scenario with the same seed therefore results in the same trace, bit for bit.
//!
//! A model reports occurrences as facts. [`Witness`] records each one and passes it to checkers.
//! Checkers are given the guarantees, but not the means by which a policy keeps them.

mod agenda;
mod dice;
mod trace;
mod witness;

pub(crate) use agenda::Agenda;
pub(crate) use dice::Dice;
pub(crate) use trace::{Note, Trace};
pub(crate) use witness::{Checker, Complaint, Complaints, Witness};

/// Nanoseconds per second.
pub(crate) const SECOND: u64 = 1_000_000_000;
