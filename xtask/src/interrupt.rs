//! Handling of signals that end a run, while child processes run.

use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::workspace;

/// Interval at which the end of a child and received signals are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Signals received by this process: SIGINT (Ctrl-C), SIGTERM and SIGHUP. They are recorded and do
/// not end the process, so that it first removes the resources of the tests.
#[derive(Debug)]
pub(crate) struct Interrupt {
    received: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
}

impl Interrupt {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// The kernel rejects a handler.
    pub(crate) fn install() -> Result<Self> {
        let received = Arc::new(AtomicBool::new(false));
        let terminated = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&received))
                .with_context(|| format!("cannot handle signal {signal}"))?;
        }
        flag::register(SIGTERM, Arc::clone(&terminated)).context("cannot handle SIGTERM")?;
        Ok(Self { received, terminated })
    }

    /// Returns true if a signal that ends the run was received.
    pub(crate) fn is_received(&self) -> bool {
        self.received.load(Ordering::Acquire)
    }

    /// Runs a command to its end. A terminal sends Ctrl-C to the child as well; SIGTERM is passed
    /// on to it once.
    ///
    /// # Errors
    /// The command cannot be started or waited for.
    pub(crate) fn run(&self, command: &mut Command) -> Result<ExitStatus> {
        let program = workspace::name(command);
        let mut child = command.spawn().with_context(|| format!("cannot run {program}"))?;
        let mut is_passed_on = false;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if !is_passed_on && self.terminated.load(Ordering::Acquire) {
                terminate(&child);
                is_passed_on = true;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

fn terminate(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // The child may have ended meanwhile.
        let _ = kill_process(pid, Signal::TERM);
    }
}
