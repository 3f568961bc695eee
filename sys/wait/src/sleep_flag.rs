//! Who has to make the system call: the protocol between a waker and a sleeper.
//!
//! One byte holds one of three states. The sleeper moves `AWAKE → ASLEEP` just
//! before it enters the kernel and back to `AWAKE` after it; wakers swap in
//! `NOTIFIED` and kick the descriptor only if what they replaced was `ASLEEP`.
//!
//! Why no wake-up is lost. All steps are read-modify-writes of one byte, so they
//! have one total order. Take any wake's swap:
//! - It replaced `ASLEEP`: the waker kicks the descriptor, which stays readable
//!   until the sleeper drains it, so the present kernel wait returns.
//! - It replaced `AWAKE` or `NOTIFIED`: the byte stays `NOTIFIED` until the
//!   sleeper's next step. If that is [`SleepFlag::fall_asleep`], it finds
//!   `NOTIFIED` and the sleeper does not sleep. If it is
//!   [`SleepFlag::wake_up`], the sleeper is just returning from its wait, which
//!   is what the waker wanted.
//!
//! Why what the waker did before is seen afterwards. The sleeper's step that
//! consumes `NOTIFIED` is an acquire of the value a waker's swap released; swaps
//! by further wakers in between are read-modify-writes and so continue the
//! release sequence. This is also why a waker may not skip its swap when it
//! sees `NOTIFIED` already there: the second waker's message could stay unseen.
//!
//! A kick may come after the sleeper woke for another reason. It then ends the
//! next sleep early, once; that is harmless and cheaper than to prevent it.

use core::sync::atomic::{AtomicU8, Ordering};

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const NOTIFIED: u8 = 2;

/// The byte shared by wakers and sleeper. A trait so that the model checker can
/// bring its own.
pub(crate) trait Cell {
    /// Acquire-release swap.
    fn swap(&self, value: u8) -> u8;
    /// Acquire-release compare-exchange; whether `current` was found.
    fn replace(&self, current: u8, value: u8) -> bool;
}

impl Cell for AtomicU8 {
    #[inline]
    fn swap(&self, value: u8) -> u8 {
        Self::swap(self, value, Ordering::AcqRel)
    }

    #[inline]
    fn replace(&self, current: u8, value: u8) -> bool {
        self.compare_exchange(current, value, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// The protocol's state. [`Default`] is awake.
#[derive(Default)]
pub(crate) struct SleepFlag<C: Cell = AtomicU8>(C);

impl<C: Cell> SleepFlag<C> {
    /// By a waker. `true`: the sleeper may be in the kernel, kick the descriptor.
    #[inline]
    pub(crate) fn notify(&self) -> bool {
        self.0.swap(NOTIFIED) == ASLEEP
    }

    /// By the sleeper, before it enters the kernel. `false`: a wake-up came
    /// meanwhile and is hereby consumed; do not sleep.
    #[inline]
    pub(crate) fn fall_asleep(&self) -> bool {
        if self.0.replace(AWAKE, ASLEEP) {
            return true;
        }
        self.0.swap(AWAKE);
        false
    }

    /// By the sleeper, after the kernel returned.
    #[inline]
    pub(crate) fn wake_up(&self) {
        self.0.swap(AWAKE);
    }
}

#[cfg(test)]
#[path = "sleep_flag_tests.rs"]
mod tests;
