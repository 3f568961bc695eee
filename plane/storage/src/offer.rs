//! Values in commands to workers that the control plane can take back until the worker takes them.

use std::sync::Arc;

use crate::exclusion::{Lock, Primitives, StdPrimitives};

/// Value that a command carries to a worker. The worker takes it when it executes the command;
/// until then, the sender can take it back. All clones refer to one value: exactly one
/// [`Offer::take`] returns it. No call blocks.
pub(crate) struct Offer<T: Send, P: Primitives = StdPrimitives>(Arc<P::Lock<Option<T>>>);

impl<T: Send, P: Primitives> Offer<T, P> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new(P::Lock::new(Some(value))))
    }

    /// Takes the value. Returns `None` if another clone has taken it, or is taking it.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.try_with(Option::take).flatten()
    }
}

impl<T: Send, P: Primitives> Clone for Offer<T, P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
#[path = "offer_tests.rs"]
mod tests;
