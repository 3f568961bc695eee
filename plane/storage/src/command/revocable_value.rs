//! Values in commands to workers that the control plane can take back until the worker takes them.

use std::sync::Arc;

use crate::sync::{Locks, StdLocks, TryLock};

/// Value that a command carries to a worker. The worker takes it when it executes the command;
/// until then, the sender can take it back. All clones refer to one value: exactly one
/// [`RevocableValue::take`] returns it. No call blocks.
pub(crate) struct RevocableValue<T: Send, L: Locks = StdLocks>(Arc<L::Lock<Option<T>>>);

impl<T: Send, L: Locks> RevocableValue<T, L> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new(L::Lock::new(Some(value))))
    }

    /// Takes the value. Returns `None` if another clone has taken it, or is taking it.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.try_with(Option::take).flatten()
    }
}

impl<T: Send, L: Locks> Clone for RevocableValue<T, L> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
#[path = "revocable_value_tests.rs"]
mod tests;
