//! Environment of an experiment: folders, waiting that a stop request interrupts, messages, and the
//! profiler of CPU time.

use std::path::Path;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use suimon_rig::{Process, Rig, StopSignal};

/// Interval of checks for a stop request while waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Profiler of CPU time. It samples only while a measurement takes place.
pub trait CpuProfiler {
    /// Starts sampling. A failure does not affect the measurement.
    fn enable(&self);

    /// Ends the sampling.
    fn disable(&self);
}

/// Period during which a profiler samples CPU time: from its creation until it is dropped. Without
/// a profiler it has no effect.
pub(crate) struct ProfileWindow<'a> {
    profiler: Option<&'a dyn CpuProfiler>,
}

impl<'a> ProfileWindow<'a> {
    fn open(profiler: Option<&'a dyn CpuProfiler>) -> Self {
        if let Some(profiler) = profiler {
            profiler.enable();
        }
        Self { profiler }
    }
}

impl Drop for ProfileWindow<'_> {
    fn drop(&mut self) {
        if let Some(profiler) = self.profiler {
            profiler.disable();
        }
    }
}

/// Environment in which an experiment is executed.
pub struct Environment<'a> {
    stop: &'a StopSignal,
    /// Folder for disks and other large files.
    folder: &'a Path,
    profiler: Option<&'a dyn CpuProfiler>,
    print_progress: &'a dyn Fn(&str),
}

impl<'a> Environment<'a> {
    /// Creates an environment. `folder` is for disks and other large files; `print_progress` shows
    /// messages about the progress.
    pub fn new(
        stop: &'a StopSignal,
        folder: &'a Path,
        profiler: Option<&'a dyn CpuProfiler>,
        print_progress: &'a dyn Fn(&str),
    ) -> Self {
        Self { stop, folder, profiler, print_progress }
    }

    /// Starts the profiler of CPU time, if the user requested one. Sampling ends when the returned
    /// value is dropped, so it should exist exactly during the measurement.
    pub(crate) fn start_profiling(&self) -> ProfileWindow<'a> {
        ProfileWindow::open(self.profiler)
    }

    /// Creates a rig (namespaces, processes and files of an experiment) with a temporary folder for
    /// sockets and settings.
    pub(crate) fn create_rig(&self) -> Result<Rig> {
        Rig::new()
    }

    /// Creates a rig in the folder for disks and other large files.
    pub(crate) fn create_large_rig(&self) -> Result<Rig> {
        Rig::new_in(self.folder)
    }

    /// Shows a message about the progress.
    pub(crate) fn show_progress(&self, text: &str) {
        (self.print_progress)(text);
    }

    /// Fails if a stop was requested. Must be called after each long operation.
    pub(crate) fn check_not_stopped(&self) -> Result<()> {
        ensure!(!self.stop.is_asked(), "stopped on request");
        Ok(())
    }

    /// Waits for a time; fails immediately if a stop is requested.
    pub(crate) fn wait(&self, time: Duration) -> Result<()> {
        self.wait_until(Instant::now() + time)
    }

    /// Waits for a program to exit; fails immediately if a stop is requested.
    pub(crate) fn wait_for(&self, process: &mut Process, limit: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + limit;
        while process.is_running() {
            ensure!(
                Instant::now() < deadline,
                "retry in {} s: {}",
                limit.as_secs(),
                process.last_words()
            );
            self.wait(POLL_INTERVAL)?;
        }
        process.wait(POLL_INTERVAL)
    }

    /// Calls `poll` at the end of each of the given number of seconds.
    pub(crate) fn poll_each_second(
        &self,
        seconds: u64,
        mut poll: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let started = Instant::now();
        for number in 1..=seconds {
            self.wait_until(started + Duration::from_secs(number))?;
            poll()?;
        }
        Ok(())
    }

    fn wait_until(&self, ends: Instant) -> Result<()> {
        loop {
            self.check_not_stopped()?;
            let remaining = ends.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Ok(());
            }
            thread::sleep(remaining.min(POLL_INTERVAL));
        }
    }
}
