//! Kernel of the simulator: events, random numbers, trace, checkers, scenarios and results.
//!
//! A run consists of one thread and one queue of events. Events occur in order of their time, and
//! events with the same time in the order in which they were planned. Random numbers come from
//! [`RandomStream`]; each component of a model has its own stream, so that the draws of one
//! component do not affect another. The same scenario with the same seed therefore results in the
//! same trace, bit for bit.
//!
//! A model reports occurrences as facts. [`Observer`] records each one and passes it to checkers.
//! Checkers are given the guarantees, but not the means by which a policy keeps them.
//!
//! Each kind of scenario implements [`Scenario`]; [`ScenarioResult`] is the result of a run.
#![forbid(unsafe_code)]

mod event_queue;
mod figure;
mod observer;
mod random;
mod scenario;
mod scenario_result;
mod trace;

pub use event_queue::EventQueue;
pub use figure::{Figure, FigurePurpose};
pub use observer::{Checker, Observer, Violation, Violations};
pub use random::RandomStream;
pub use scenario::{InvalidKey, InvalidKeys, InvalidScenario, Scenario, read};
pub use scenario_result::{Options, ScenarioResult, align_columns};
pub use trace::{Trace, TraceFact};

/// Nanoseconds per second.
pub const SECOND_NS: u64 = 1_000_000_000;
