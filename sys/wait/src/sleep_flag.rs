//! Protocol between wakers and a sleeper that determines which wake-up needs a system call.
//!
//! One byte holds one of three states. The sleeper changes `AWAKE` to `ASLEEP` just before it
//! enters the kernel, and back to `AWAKE` afterwards. Wakers swap in `NOTIFIED`, and write to the
//! eventfd only if they replaced `ASLEEP`.
//!
//! No wake-up is lost. All steps are read-modify-writes of one byte, so they have one total order.
//! A waker's swap has one of two results:
//! - It replaced `ASLEEP`: the waker writes to the eventfd, which stays readable until the sleeper
//!   drains it, so the current wait returns.
//! - It replaced `AWAKE` or `NOTIFIED`: the byte stays `NOTIFIED` until the sleeper's next step. If
//!   that is [`SleepFlag::fall_asleep`], it finds `NOTIFIED` and the sleeper does not sleep. If it
//!   is [`SleepFlag::wake_up`], the sleeper is just returning from its wait, as the waker requires.
//!
//! Earlier writes of the waker are visible afterwards. The sleeper's step that consumes `NOTIFIED`
//! is an acquire of the value that a waker's swap released; swaps by further wakers in between are
//! read-modify-writes and continue the release sequence. Therefore a waker may not skip its swap
//! when it sees `NOTIFIED`: the second waker's message could stay invisible.
//!
//! A write to the eventfd may come after the sleeper woke for another reason. It then ends the next
//! sleep early, once, which is harmless and cheaper than preventing it.

use core::sync::atomic::{AtomicU8, Ordering};

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const NOTIFIED: u8 = 2;

/// Byte shared by wakers and sleeper. A trait, so that the model checker can use its own type.
pub(crate) trait Cell {
    /// Stores `value` and returns the former value, with acquire-release ordering.
    fn swap(&self, value: u8) -> u8;
    /// Stores `value` if the cell contains `current`, with acquire-release ordering. Returns true
    /// if the value was stored.
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

/// State of the protocol; initially awake.
#[derive(Default)]
pub(crate) struct SleepFlag<C: Cell = AtomicU8>(C);

impl<C: Cell> SleepFlag<C> {
    /// Called by a waker. Returns true if the sleeper may be in the kernel, so that the eventfd
    /// must be written.
    #[inline]
    pub(crate) fn notify(&self) -> bool {
        self.0.swap(NOTIFIED) == ASLEEP
    }

    /// Called by the sleeper before it enters the kernel. Returns false if a wake-up arrived
    /// meanwhile, which is consumed; the sleeper must not sleep then.
    #[inline]
    pub(crate) fn fall_asleep(&self) -> bool {
        if self.0.replace(AWAKE, ASLEEP) {
            return true;
        }
        self.0.swap(AWAKE);
        false
    }

    /// Called by the sleeper after the kernel returned. Marks it as awake and consumes a
    /// notification.
    #[inline]
    pub(crate) fn wake_up(&self) {
        self.0.swap(AWAKE);
    }
}

#[cfg(test)]
#[path = "sleep_flag_tests.rs"]
mod tests;
