//! Who sees what happens, and who complains of it.

use serde::Serialize;
use suimon_quantity::Time;

use crate::kernel::{Note, Trace};

/// Complaints that are kept of a run; further ones are counted.
const KEPT_MAX: usize = 16;

/// Something that was promised did not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Complaint {
    /// When, in nanoseconds of virtual time since the run began.
    pub(crate) at_ns: u64,
    /// Who says so.
    pub(crate) checker: &'static str,
    /// What.
    pub(crate) what: String,
}

/// What checkers complain of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Complaints {
    pub(crate) kept: Vec<Complaint>,
    pub(crate) count: u64,
    /// How often something was judged for which it had to be long enough undisturbed: without
    /// any, that there is no complaint says little.
    pub(crate) judged: u64,
}

impl Complaints {
    /// Something did not hold.
    pub(crate) fn add(&mut self, at: Time, checker: &'static str, what: String) {
        self.count += 1;
        if self.kept.len() < KEPT_MAX {
            self.kept.push(Complaint { at_ns: at.as_ns(), checker, what });
        }
    }
}

/// Holds what happens against what was promised. It hears facts and asks no policy.
pub(crate) trait Checker<F> {
    /// Something happened.
    fn hear(&mut self, now: Time, fact: &F, complaints: &mut Complaints);

    /// The run has ended.
    fn end(&mut self, _now: Time, _complaints: &mut Complaints) {}
}

/// The trace of a run and its checkers.
pub(crate) struct Witness<F> {
    pub(crate) trace: Trace,
    pub(crate) complaints: Complaints,
    checkers: Vec<Box<dyn Checker<F>>>,
}

impl<F: Note> Witness<F> {
    /// Nothing has happened.
    pub(crate) fn new(trace: Trace, checkers: Vec<Box<dyn Checker<F>>>) -> Self {
        Self { trace, complaints: Complaints::default(), checkers }
    }

    /// Something happened.
    pub(crate) fn tell(&mut self, now: Time, fact: &F) {
        self.trace.note(now, fact);
        for checker in &mut self.checkers {
            checker.hear(now, fact, &mut self.complaints);
        }
    }

    /// The run has ended.
    pub(crate) fn end(&mut self, now: Time) {
        for checker in &mut self.checkers {
            checker.end(now, &mut self.complaints);
        }
    }
}
