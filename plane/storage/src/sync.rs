//! Locks of the control plane.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Kind of locks. The model checker can use its own.
pub(crate) trait Locks {
    type Lock<T: Send>: TryLock<T>;
}

/// Locks of the standard library.
pub(crate) struct StdLocks;

impl Locks for StdLocks {
    type Lock<T: Send> = Mutex<T>;
}

/// Lock that protects a value.
pub(crate) trait TryLock<T> {
    fn new(value: T) -> Self;
    /// Calls `f` with exclusive access to the value. Returns `None` while another thread uses the
    /// value.
    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R>;
}

impl<T> TryLock<T> for Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        match self.try_lock() {
            Ok(mut value) => Some(f(&mut value)),
            Err(TryLockError::Poisoned(value)) => Some(f(&mut value.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Locks a mutex, even if another thread has panicked while holding it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
