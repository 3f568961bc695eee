//! [`WaitSet`] of a worker, implemented with epoll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use suimon_ports::{WaitSet, Waker};
use suimon_quantity::Time;

use crate::clock;
use crate::pwait2::Events;
use crate::run_delay::RunDelay;
use crate::sleep_flag::SleepFlag;

/// Largest token that [`WaitSet::watch`] accepts; larger ones are reserved.
pub const TOKEN_MAX: u64 = u64::MAX - 2;
const TOKEN_WAKER: u64 = u64::MAX;
const TOKEN_TIMER: u64 = u64::MAX - 1;

struct Shared {
    flag: SleepFlag,
    kick: OwnedFd,
}

/// Waker of the thread that sleeps in an [`EpollWait`]. A wake-up is one atomic swap, and a write
/// to an eventfd only if the thread sleeps.
#[derive(Clone)]
pub struct EventWaker(Arc<Shared>);

impl Waker for EventWaker {
    fn wake(&self) {
        if self.0.flag.notify() {
            // The write can only fail with EAGAIN at a count of 2^64 - 2, and
            // then the descriptor is readable anyway.
            let _ = rustix::io::write(&self.0.kick, &1_u64.to_ne_bytes());
        }
    }
}

/// How deadlines are passed to the kernel.
enum Deadlines {
    /// As the timeout of `epoll_pwait2`.
    Timeout,
    /// With a timerfd, if the kernel lacks `epoll_pwait2`.
    Timer(OwnedFd),
}

/// Implementation of [`WaitSet`] with epoll.
///
/// A wake-up while the worker is awake makes the next sleeping [`WaitSet::wait`] return at once; a
/// `wait(None)` in between does not consume it.
pub struct EpollWait {
    epoll: OwnedFd,
    shared: Arc<Shared>,
    events: Events,
    deadlines: Deadlines,
    run_delay: RunDelay,
}

impl EpollWait {
    /// Creates an instance that watches no descriptor except that of its waker.
    ///
    /// # Errors
    /// The error of the system call: descriptors or memory are exhausted.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let kick = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &kick, EventData::new_u64(TOKEN_WAKER), EventFlags::IN)?;
        let mut wait = Self {
            epoll,
            shared: Arc::new(Shared { flag: SleepFlag::default(), kick }),
            events: Events::new(),
            deadlines: Deadlines::Timeout,
            run_delay: RunDelay::default(),
        };
        let result = wait.events.wait(wait.epoll.as_fd(), Some(&[0, 0]));
        if result.is_err_and(|error| lacks_call(&error)) {
            wait.use_timer()?;
        }
        Ok(wait)
    }

    /// Returns a waker of this wait; any number may exist.
    pub fn waker(&self) -> EventWaker {
        EventWaker(Arc::clone(&self.shared))
    }

    /// Opens the file with the calling thread's run delay, which [`WaitSet::run_delay`] reads
    /// later. Must be called on the thread that waits.
    pub(crate) fn open_run_delay(&mut self) {
        self.run_delay = RunDelay::for_this_thread();
    }

    fn use_timer(&mut self) -> io::Result<()> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        epoll::add(&self.epoll, &timer, EventData::new_u64(TOKEN_TIMER), EventFlags::IN)?;
        self.deadlines = Deadlines::Timer(timer);
        Ok(())
    }

    fn poll(&mut self) -> io::Result<()> {
        match self.deadlines {
            Deadlines::Timeout => self.events.wait(self.epoll.as_fd(), Some(&[0, 0])),
            Deadlines::Timer(_) => self.events.wait_milliseconds(self.epoll.as_fd(), false),
        }
    }

    fn sleep(&mut self, deadline: Time) -> io::Result<()> {
        match &self.deadlines {
            Deadlines::Timeout if deadline == Time::NEVER => {
                self.events.wait(self.epoll.as_fd(), None)
            }
            Deadlines::Timeout => {
                let span = deadline.since(clock::now());
                let spec = clock::to_timespec(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
                self.events.wait(self.epoll.as_fd(), Some(&[spec.tv_sec, spec.tv_nsec]))
            }
            Deadlines::Timer(timer) => {
                // An absolute time in the past expires at once; zero would disarm the timer.
                let ns = if deadline == Time::NEVER { 0 } else { deadline.as_ns().max(1) };
                let spec = Itimerspec {
                    it_interval: Timespec::default(),
                    it_value: clock::to_timespec(ns),
                };
                timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &spec)?;
                self.events.wait_milliseconds(self.epoll.as_fd(), true)
            }
        }
    }

    /// Appends the tokens of ready descriptors to `ready`, and clears the eventfd and the timer.
    fn collect(&mut self, ready: &mut Vec<u64>) {
        for token in self.events.tokens() {
            match token {
                TOKEN_WAKER => drain(self.shared.kick.as_fd()),
                TOKEN_TIMER => {
                    if let Deadlines::Timer(timer) = &self.deadlines {
                        drain(timer.as_fd());
                    }
                }
                _ => ready.push(token),
            }
        }
    }

    fn sleep_until(&mut self, deadline: Time, ready: &mut Vec<u64>) -> io::Result<()> {
        match self.sleep(deadline) {
            Ok(()) => {
                self.collect(ready);
                Ok(())
            }
            // EINTR: io_uring has added a completion to the thread's ring, which polling finds
            // faster than another wait.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl WaitSet for EpollWait {
    fn watch(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        if token > TOKEN_MAX {
            let text = format!("token {token:#x} is reserved: the largest is {TOKEN_MAX:#x}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN)?;
        Ok(())
    }

    fn unwatch(&mut self, fd: BorrowedFd<'_>) {
        // ENOENT: the descriptor was not watched. No other error is possible with two open
        // descriptors.
        let _ = epoll::delete(&self.epoll, fd);
    }

    fn wait(&mut self, deadline: Option<Time>, ready: &mut Vec<u64>) -> io::Result<()> {
        let sleeps = deadline.filter(|deadline| *deadline > clock::now());
        let Some(deadline) = sleeps else {
            if deadline.is_some() {
                // The deadline has passed: this wait returns, so it consumes a wake-up.
                self.shared.flag.wake_up();
            }
            self.poll()?;
            self.collect(ready);
            return Ok(());
        };
        if !self.shared.flag.fall_asleep() {
            self.poll()?;
            self.collect(ready);
            return Ok(());
        }
        let result = self.sleep_until(deadline, ready);
        self.shared.flag.wake_up();
        result
    }

    fn yield_now(&mut self) {
        std::thread::yield_now();
    }

    fn now(&self) -> Time {
        clock::now()
    }

    fn cpu_time(&self) -> Duration {
        clock::thread_cpu_time()
    }

    fn run_delay(&self) -> Duration {
        self.run_delay.get()
    }
}

fn drain(fd: BorrowedFd<'_>) {
    let mut count = [0; 8];
    // One read clears an eventfd or a timerfd; EAGAIN means that it was clear.
    let _ = rustix::io::read(fd, &mut count);
}

/// Returns true if the error means that the call is not available: ENOSYS (kernels before 5.11) or
/// EPERM (seccomp filters of containers).
fn lacks_call(error: &io::Error) -> bool {
    [Errno::NOSYS, Errno::PERM]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
#[path = "epoll_wait_tests.rs"]
mod tests;
