//! Scheduling priority for threads that must meet the timers of a protocol on a loaded machine.

use std::fs;
use std::time::Duration;

use anyhow::Result;

use crate::command::run_any;
use crate::process::Process;

/// Highest priority of threads without real-time scheduling (sched(7)). Such a thread runs within
/// milliseconds after it is woken, even with many runnable threads.
const NICE: &str = "-20";
const LIMIT: Duration = Duration::from_secs(60);

/// First arguments of a command that must run with the highest priority.
pub const PREFERRED: &[&str] = &["nice", "-n", NICE];

/// Sets the highest priority for the threads of a process whose names begin with `prefix`, and for
/// threads that they start later. A test that judges a protocol by its timers then judges the
/// programs, not the kernel's distribution of CPU time.
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
