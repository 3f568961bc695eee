//! Threads that keep the timers of a protocol although the machine is loaded.

use std::fs;
use std::time::Duration;

use anyhow::Result;

use crate::command::run_any;
use crate::process::Process;

/// The highest priority of threads without real-time scheduling (sched(7)). Such a thread runs
/// within milliseconds after it is woken, however many others are runnable.
const NICE: &str = "-20";
const LIMIT: Duration = Duration::from_secs(60);

/// Words that begin the command line of a program that is to have the highest priority.
pub const PREFERRED: &[&str] = &["nice", "-n", NICE];

/// Gives the highest priority to the threads of a process whose names begin with `prefix`, and to
/// those that they start later. A test that judges a protocol by its timers then judges the
/// programs, not how the kernel shares CPUs between them and other load.
///
/// # Errors
/// The process has ended, or the kernel does not permit it.
pub fn prefer_threads(process: &Process, prefix: &str) -> Result<()> {
    for thread in fs::read_dir(format!("/proc/{}/task", process.id()))? {
        let thread = thread?;
        // A thread that has just ended has no name.
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        if name.starts_with(prefix) {
            let id = thread.file_name().to_string_lossy().into_owned();
            let set = run_any(&["renice", "--priority", NICE, "--pid", &id], LIMIT)?;
            let has_ended = set.stderr.contains("No such process");
            anyhow::ensure!(set.is_ok() || has_ended, "{}", set.stderr.trim());
        }
    }
    Ok(())
}
