//! Rules of injected faults, counts of operations, and operations that are held.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use fuser::Errno;
use suimon_test_programs::{FaultEffect, StoreFault, StoreOperation};

/// Result of admitting an operation: executed as requested, or with an injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Proceed,
    /// A read or write transfers part of its bytes.
    Short,
    /// A flush fails, and unflushed writes are undone.
    Lose,
    Fail(Errno),
}

/// Rules and counts, shared by the threads of the file system and of the control socket.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    state: Mutex<State>,
    cleared: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<ActiveRule>,
    counts: BTreeMap<StoreOperation, u64>,
    /// Number of injected faults.
    injected: u64,
    /// Number of operations that are held.
    held: u64,
    /// Number of times that the rules were cleared.
    clearings: u64,
}

#[derive(Debug)]
struct ActiveRule {
    rule: StoreFault,
    /// Number of operations that the rule has applied to.
    seen: u64,
}

impl ActiveRule {
    /// Counts an operation. Returns the effect if the rule injects a fault into it.
    fn effect_on(&mut self, operation: StoreOperation, name: &str) -> Option<FaultEffect> {
        if self.rule.operation != operation || !self.rule.applies_to(name) {
            return None;
        }
        let nth = self.seen;
        self.seen += 1;
        let last = self.rule.after.saturating_add(self.rule.count);
        (self.rule.after <= nth && nth < last).then_some(self.rule.effect)
    }
}

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation and determines its fault. Blocks if the operation is delayed or held.
    pub(crate) fn admit(&self, operation: StoreOperation, name: &str) -> Admission {
        let mut state = self.state();
        *state.counts.entry(operation).or_default() += 1;
        let effect = state.rules.iter_mut().find_map(|rule| rule.effect_on(operation, name));
        let Some(effect) = effect else { return Admission::Proceed };
        state.injected += 1;
        match effect {
            FaultEffect::Error(number) => Admission::Fail(Errno::from_i32(number)),
            FaultEffect::Short => Admission::Short,
            FaultEffect::Lose => Admission::Lose,
            FaultEffect::Delay(time) => {
                drop(state);
                thread::sleep(time);
                Admission::Proceed
            }
            FaultEffect::Hold => {
                self.hold(state);
                Admission::Proceed
            }
        }
    }

    /// Blocks until the rules are cleared.
    fn hold(&self, mut state: MutexGuard<'_, State>) {
        let clearings = state.clearings;
        state.held += 1;
        while state.clearings == clearings {
            state = self.cleared.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.held -= 1;
    }

    /// Returns true if unflushed writes to a file may have to be undone.
    pub(crate) fn may_lose(&self, name: &str) -> bool {
        self.state()
            .rules
            .iter()
            .any(|active| active.rule.effect == FaultEffect::Lose && active.rule.applies_to(name))
    }

    /// Adds a rule. Of several rules for an operation, the first one that injects a fault applies.
    pub(crate) fn add(&self, rule: StoreFault) {
        self.state().rules.push(ActiveRule { rule, seen: 0 });
    }

    /// Removes all rules, resumes held operations and sets the counts to zero.
    pub(crate) fn clear(&self) {
        let mut state = self.state();
        state.rules.clear();
        state.counts.clear();
        state.injected = 0;
        state.clearings += 1;
        drop(state);
        self.cleared.notify_all();
    }

    /// Returns the counts since the last clearing as text: `faults=1 held=0 read=2 ...`.
    pub(crate) fn counts(&self) -> String {
        let state = self.state();
        let mut text = format!("faults={} held={}", state.injected, state.held);
        for (operation, count) in &state.counts {
            text += &format!(" {}={count}", operation.name());
        }
        text
    }
}

/// Returns the number of bytes that a short read or write transfers.
pub(crate) fn short_len(len: usize) -> usize {
    match len / 2 / UNIT * UNIT {
        0 => len,
        short => short,
    }
}

/// Unit of short transfers in bytes, so that direct I/O stays aligned.
const UNIT: usize = 4096;

/// Time for which the kernel may use attributes and names without a query: none.
pub(crate) const NOT_CACHED: Duration = Duration::ZERO;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_nth_operation_on_a_matching_file_fails() {
        let faults = Faults::default();
        let rule = StoreFault::new(StoreOperation::Write, FaultEffect::Error(28)).on("*.raw");
        faults.add(rule.nth(2));
        let admit = |operation, name| faults.admit(operation, name) == Admission::Proceed;
        assert!(admit(StoreOperation::Write, "a.raw"));
        assert!(admit(StoreOperation::Write, "a.vhd"));
        assert!(admit(StoreOperation::Read, "a.raw"));
        assert!(!admit(StoreOperation::Write, "a.raw"));
        assert!(admit(StoreOperation::Write, "a.raw"));
        assert_eq!(faults.counts(), "faults=1 held=0 read=1 write=4");
        faults.clear();
        assert_eq!(faults.counts(), "faults=0 held=0");
    }

    #[test]
    fn a_held_operation_proceeds_when_the_faults_are_cleared() {
        let faults = Arc::new(Faults::default());
        faults.add(StoreFault::new(StoreOperation::Flush, FaultEffect::Hold));
        let other = Arc::clone(&faults);
        let held = thread::spawn(move || other.admit(StoreOperation::Flush, "a"));
        while !faults.counts().contains("held=1") {
            thread::yield_now();
        }
        faults.clear();
        assert_eq!(held.join().unwrap(), Admission::Proceed);
    }

    #[test]
    fn short_transfers_are_whole_units() {
        assert_eq!([0, 512, 4096, 8192, 20480].map(short_len), [0, 512, 4096, 4096, 8192]);
    }
}
