//! Supervision of the process that runs experiments, so that no process or device is left after a
//! kill.
//!
//! The program starts itself a second time, as a child process. The child runs the experiments, and
//! ends in an orderly way when the first process is gone. If the child is killed, the first process
//! removes the processes and devices that the child left.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use suimon_rig::{StopSignal, sweep_leftovers};

/// Environment variable that the supervising process sets for its child: its own process id.
const SUPERVISOR: &str = "SUIMON_LAB_WATCHED_BY";

/// Environment variable that `suimon lab work` sets for a run that it starts: its own process id.
/// The run ends in an orderly way when that process ends.
pub(crate) const WORK_COMMAND_PID_VARIABLE: &str = "SUIMON_LAB_ASKED_BY";

/// Interval at which the supervising process checks whether its child has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Time limit for the child to end in an orderly way after a stop request.
const END_LIMIT: Duration = Duration::from_secs(60);

/// Starts the child process and waits for its end. Returns its exit status, or `None` in the child
/// process itself, which then executes the command.
///
/// # Errors
/// The child cannot be started, or the supervising process has already ended.
pub(crate) fn supervise() -> Result<Option<ExitStatus>> {
    if let Ok(parent) = env::var(SUPERVISOR) {
        end_with(&parent)?;
        return Ok(None);
    }
    let stop = StopSignal::new()?;
    if let Ok(parent) = env::var(WORK_COMMAND_PID_VARIABLE) {
        end_with(&parent)?;
    }
    let mut work = Command::new(env::current_exe()?)
        .args(env::args_os().skip(1))
        .env(SUPERVISOR, std::process::id().to_string())
        .env_remove(WORK_COMMAND_PID_VARIABLE)
        .spawn()
        .context("cannot start the process that runs the experiment")?;
    let status = wait(&mut work, &stop)?;
    if status.signal().is_some() {
        sweep_leftovers();
    }
    Ok(Some(status))
}

/// Requests the kernel to send this process a stop signal when its parent ends.
///
/// # Errors
/// The parent has already ended.
fn end_with(parent: &str) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // The parent may have ended before the kernel received the request.
    let exists = getppid().is_some_and(|pid| pid.as_raw_nonzero().to_string() == parent);
    if !exists {
        bail!("the parent process has ended");
    }
    Ok(())
}

fn wait(work: &mut Child, stop: &StopSignal) -> Result<ExitStatus> {
    let mut stop_requested_at: Option<Instant> = None;
    loop {
        if let Some(status) = work.try_wait()? {
            return Ok(status);
        }
        if stop.is_asked() && stop_requested_at.is_none() {
            stop_requested_at = Some(Instant::now());
            signal(work, Signal::TERM);
        }
        if stop_requested_at.is_some_and(|requested_at| requested_at.elapsed() > END_LIMIT) {
            signal(work, Signal::KILL);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn signal(work: &Child, signal: Signal) {
    if let Some(pid) = i32::try_from(work.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    use super::*;

    /// Child process of the test below, started as a run is started by its worker.
    #[test]
    #[ignore = "waits to be ended; `a_run_ends_when_its_worker_is_killed` starts it"]
    fn stays() {
        let Ok(parent) = env::var(WORK_COMMAND_PID_VARIABLE) else { return };
        end_with(&parent).unwrap();
        fs::write(env::var("SUIMON_LAB_READY").unwrap(), "").unwrap();
        thread::sleep(Duration::from_secs(60));
    }

    #[test]
    fn a_run_ends_when_its_worker_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let script = "SUIMON_LAB_ASKED_BY=$$ \"$0\" --exact supervision::tests::stays --ignored \
                      </dev/null >&2 & echo $!; wait";
        let mut worker = Command::new("sh")
            .args(["-c", script])
            .arg(env::current_exe().unwrap())
            .env("SUIMON_LAB_READY", &ready)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut pid = String::new();
        BufReader::new(worker.stdout.take().unwrap()).read_line(&mut pid).unwrap();
        let wait_until = |condition: &str, is_met: &dyn Fn() -> bool| {
            let started = Instant::now();
            while !is_met() {
                assert!(started.elapsed() < Duration::from_secs(120), "{condition}");
                thread::sleep(POLL_INTERVAL);
            }
        };
        wait_until("it does not start", &|| ready.exists());
        worker.kill().unwrap();
        worker.wait().unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        // An ended process remains as zombie until it is waited for.
        let has_ended =
            || fs::read_to_string(&stat).map_or(true, |stat_text| stat_text.contains(") Z "));
        wait_until("it goes on without its worker", &has_ended);
    }
}
