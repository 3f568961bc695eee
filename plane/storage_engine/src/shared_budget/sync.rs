//! Mutual exclusion between workers. Defined by traits, so that the model checker can use its own
//! primitives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

/// Time for which a control-plane thread pauses before it acquires a lock of workers again: longer
/// than the rounds of workers that try to acquire it.
const PAUSE: Duration = Duration::from_micros(20);

/// Set of synchronisation primitives: a lock, a flag and a yield.
pub(crate) trait Primitives {
    type Lock<T: Send>: Lock<T>;
    type Flag: Flag;

    /// Lets another thread run on the caller's CPU, if one is runnable.
    fn yield_now();
}

/// Lock that protects a value.
pub(crate) trait Lock<T> {
    fn new(value: T) -> Self;
    /// Calls `f` with exclusive access to the value. Blocks while another thread uses the value.
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R;
    /// As [`Lock::with`]; returns `None` instead of blocking.
    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R>;
}

/// Flag that is changed only under a [`Lock`], and read without it.
pub(crate) trait Flag: Default + Send + Sync {
    fn set(&self, value: bool);
    fn get(&self) -> bool;
}

/// Primitives of the standard library.
pub(crate) struct StdPrimitives;

impl Primitives for StdPrimitives {
    type Lock<T: Send> = Mutex<T>;
    type Flag = AtomicBool;

    fn yield_now() {
        std::thread::yield_now();
    }
}

impl StdPrimitives {
    /// Pauses, so that other threads can use a lock that the caller will acquire again.
    pub(crate) fn pause() {
        std::thread::sleep(PAUSE);
    }
}

impl<T> Lock<T> for Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        match self.try_lock() {
            Ok(mut value) => Some(f(&mut value)),
            Err(TryLockError::Poisoned(value)) => Some(f(&mut value.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Flag for AtomicBool {
    fn set(&self, value: bool) {
        self.store(value, Ordering::Release);
    }

    fn get(&self) -> bool {
        self.load(Ordering::Acquire)
    }
}
