//! Recording of facts, and checkers.

use serde::Serialize;
use suimon_quantity::Time;

use crate::trace::{Trace, TraceFact};

/// Largest number of violations per run that are kept with their description; further ones are only
/// counted.
const REPORTED_MAX: usize = 16;

/// Violation of a guarantee found by a checker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Time in ns of virtual time since the start of the run.
    pub at_ns: u64,
    /// Name of the checker that found it.
    pub checker: &'static str,
    /// Description of the violation.
    #[serde(rename = "what")]
    pub description: String,
}

/// Violations of guarantees that checkers have found.
#[derive(Clone, Debug, Default)]
pub struct Violations {
    /// First violations, in the order of time.
    pub first: Vec<Violation>,
    /// Number of all violations, further ones included.
    pub count: u64,
    /// Number of checks that were made. If it is 0, the absence of violations means nothing.
    pub checks: u64,
}

impl Violations {
    /// Adds a violation found by a checker.
    pub fn add(&mut self, time: Time, checker: &'static str, what: String) {
        self.count += 1;
        if self.first.len() < REPORTED_MAX {
            self.first.push(Violation { at_ns: time.as_ns(), checker, description: what });
        }
    }
}

/// Checker of guarantees. It receives facts and does not query policies.
pub trait Checker<F> {
    /// Processes a fact. Adds the violations that it proves to `complaints`.
    fn observe(&mut self, now: Time, fact: &F, complaints: &mut Violations);

    /// Processes the end of the run. Adds the violations that it proves to `complaints`.
    fn end(&mut self, _now: Time, _complaints: &mut Violations) {}
}

/// Trace and checkers of a run.
pub struct Observer<F> {
    /// Trace of all recorded facts.
    pub trace: Trace,
    /// Violations found by the checkers.
    pub violations: Violations,
    checkers: Vec<Box<dyn Checker<F>>>,
}

impl<F: TraceFact> Observer<F> {
    /// Returns an observer without facts.
    pub fn new(trace: Trace, checkers: Vec<Box<dyn Checker<F>>>) -> Self {
        Self { trace, violations: Violations::default(), checkers }
    }

    /// Records a fact and passes it to the checkers.
    pub fn record(&mut self, now: Time, fact: &F) {
        self.trace.add_fact(now, fact);
        for checker in &mut self.checkers {
            checker.observe(now, fact, &mut self.violations);
        }
    }

    /// Processes the end of the run.
    pub fn end(&mut self, now: Time) {
        for checker in &mut self.checkers {
            checker.end(now, &mut self.violations);
        }
    }
}
