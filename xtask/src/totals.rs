//! What a run of all tests comes to.

use std::collections::BinaryHeap;

use anyhow::Result;

use crate::cpu_use::{Moment, Took};

#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// What failed, to be read without scrolling.
    pub(crate) failures: Vec<String>,
    /// What passed only when it was run again.
    pub(crate) second_runs: Vec<String>,
    /// What could not be looked at here, and why.
    pub(crate) unchecked: Vec<String>,
    /// What was run, by seconds, with the words for it.
    longest: BinaryHeap<(u64, String)>,
}

/// So many of the longest steps are told at the end.
const LONGEST: usize = 12;

impl Totals {
    pub(crate) fn step(&mut self, name: &str, result: Result<()>, began: Moment) {
        let took = began.took();
        self.took(name, &took);
        match result {
            Ok(()) => {
                self.passed += 1;
                println!("==> {name}: passed ({took})");
            }
            Err(error) => {
                self.failed += 1;
                self.failures.push(format!("{name}: {error:#}"));
                println!("==> {name}: FAILED ({took}): {error:#}");
            }
        }
    }

    /// Keeps in mind how long something took.
    pub(crate) fn took(&mut self, name: &str, took: &Took) {
        self.longest.push((took.seconds, format!("{name} ({took})")));
    }

    /// Says what is to be read without scrolling, the totals last.
    pub(crate) fn tell(mut self) {
        for (_, step) in (0..LONGEST).map_while(|_| self.longest.pop()) {
            println!("LONGEST {step}");
        }
        for failure in &self.failures {
            println!("FAILED {failure}");
        }
        for tests in &self.second_runs {
            println!("AT THE SECOND RUN ONLY {tests}");
        }
        for what in &self.unchecked {
            println!("NOT CHECKED {what}");
        }
        println!("{} passed, {} failed", self.passed, self.failed);
    }
}
