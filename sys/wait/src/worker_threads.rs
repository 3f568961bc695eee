//! Threads of workers, pinned to a CPU or not.

use core::num::NonZeroU64;
use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use rustix::process::getpid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use suimon_ports::{CpuAffinity, WaitSet, Waker, WorkerRuntime};
use suimon_quantity::Time;

use crate::clock;
use crate::epoll_wait::EpollWait;

/// Maximum length of a thread's name in bytes, without the terminating zero.
const NAME_BYTES_MAX: usize = 15;

/// Timer slack of workers. The kernel's default of 50 µs, which allows it to coalesce wake-ups,
/// would be most of a typical deadline.
const TIMER_SLACK_NS: Option<NonZeroU64> = NonZeroU64::new(1);

/// Implementation of [`WorkerRuntime`] with threads of this process.
///
/// Needs no privilege. The permitted CPUs are those of the process's main thread, so that a caller
/// that is pinned itself can start workers on all of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkerThreads;

type Body = Box<dyn FnOnce(Box<dyn WaitSet>) + Send>;
type Join = Box<dyn FnOnce() + Send>;

impl WorkerRuntime for WorkerThreads {
    /// Starts a worker thread and runs `body` on it. A name longer than 15 bytes is truncated. The
    /// join function propagates a panic of the body.
    fn start(
        &self,
        name: &str,
        placement: CpuAffinity,
        body: Body,
    ) -> io::Result<(Arc<dyn Waker>, Join)> {
        let name = thread_name(name)?;
        let cpus = self.allowed(placement)?;
        let wait = EpollWait::new()?;
        let waker: Arc<dyn Waker> = Arc::new(wait.waker());
        let (report, outcome) = sync_channel(1);
        let thread = Builder::new().name(name).spawn(move || run_on(&cpus, wait, body, &report))?;
        match outcome.recv() {
            Ok(Ok(())) => Ok((waker, Box::new(move || join(thread)))),
            Ok(Err(error)) => {
                join(thread);
                Err(error)
            }
            // A thread that ended without a report has panicked.
            Err(_) => {
                join(thread);
                Err(io::Error::other("the worker's thread ended before it started"))
            }
        }
    }

    fn allowed_cpus(&self) -> Vec<u16> {
        // Cannot fail for the own process; with an empty list, every `start` returns a clear error.
        let set = sched_getaffinity(Some(getpid())).unwrap_or_default();
        let max = u16::try_from(CpuSet::MAX_CPU).unwrap_or(u16::MAX);
        (0..max).filter(|cpu| set.is_set(usize::from(*cpu))).collect()
    }

    fn now(&self) -> Time {
        clock::now()
    }
}

impl WorkerThreads {
    /// Returns the CPUs on which a thread with this affinity may run.
    ///
    /// # Errors
    /// The CPU is not one of the permitted ones.
    fn allowed(self, placement: CpuAffinity) -> io::Result<Vec<u16>> {
        let allowed = self.allowed_cpus();
        let cpu = match placement {
            CpuAffinity::Floating => return Ok(allowed),
            CpuAffinity::Pinned(cpu) if allowed.contains(&cpu) => return Ok(vec![cpu]),
            CpuAffinity::Pinned(cpu) => cpu,
        };
        let text = format!(
            "CPU {cpu} does not exist, or this process may not run on it; choose from {}",
            ranges(&allowed)
        );
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    }
}

fn run_on(cpus: &[u16], mut wait: EpollWait, body: Body, report: &SyncSender<io::Result<()>>) {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(usize::from(*cpu)));
    let result = sched_setaffinity(None, &set)
        .and_then(|()| set_current_timer_slack(TIMER_SLACK_NS))
        .map_err(|errno| {
            io::Error::new(
                errno.kind(),
                format!("setting the CPU affinity to {}: {errno}", ranges(cpus)),
            )
        });
    let started = result.is_ok();
    // The caller waits for this message, so sending cannot fail.
    let _ = report.send(result);
    if started {
        wait.open_run_delay();
        body(Box::new(wait));
    }
}

fn join(thread: JoinHandle<()>) {
    if let Err(panic) = thread.join() {
        resume_unwind(panic);
    }
}

/// Truncates the name at a character boundary to the length that the kernel keeps.
fn thread_name(name: &str) -> io::Result<String> {
    if name.is_empty() || name.contains('\0') {
        let text = format!("`{}` is not a valid name of a thread", name.escape_default());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let end = name
        .char_indices()
        .map(|(index, letter)| index + letter.len_utf8())
        .take_while(|end| *end <= NAME_BYTES_MAX)
        .last();
    Ok(name.get(..end.unwrap_or_default()).unwrap_or_default().to_owned())
}

/// Formats an ascending list of CPUs as `0-3,6`.
fn ranges(cpus: &[u16]) -> String {
    let mut text = String::new();
    let mut remaining = cpus.iter().copied().peekable();
    while let Some(first) = remaining.next() {
        let mut last = first;
        while let Some(next) = remaining.next_if(|next| Some(*next) == last.checked_add(1)) {
            last = next;
        }
        let comma = if text.is_empty() { "" } else { "," };
        text += &if first == last {
            format!("{comma}{first}")
        } else {
            format!("{comma}{first}-{last}")
        };
    }
    if text.is_empty() { "none".to_owned() } else { text }
}

#[cfg(test)]
#[path = "worker_threads_tests.rs"]
mod tests;
