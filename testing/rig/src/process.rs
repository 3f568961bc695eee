//! Programs that run concurrently with a test.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::leftovers;
use crate::rig::Rig;
use crate::wait::{ProcessEnded, wait_for_value};

/// Time limit for a program to stop after SIGTERM.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Running program; dropping it kills the program.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program; its output goes to a log in the rig's folder.
    ///
    /// # Errors
    /// The program could not be started.
    pub fn start<S: AsRef<str>>(rig: &Rig, name: &str, arguments: &[S]) -> Result<Self> {
        Self::start_in(rig, name, arguments, &[])
    }

    /// Starts a program with environment variables.
    ///
    /// # Errors
    /// The program could not be started.
    pub fn start_in<S: AsRef<str>>(
        rig: &Rig,
        name: &str,
        arguments: &[S],
        environment: &[(&str, String)],
    ) -> Result<Self> {
        let Some((program, arguments)) = arguments.split_first() else { bail!("no program given") };
        let log = rig.file(&format!("{}.log", rig.unique(name)));
        let output =
            File::create(&log).with_context(|| format!("cannot make {}", log.display()))?;
        let child = Command::new(program.as_ref())
            .args(arguments.iter().map(AsRef::as_ref))
            .envs(environment.iter().map(|(key, value)| (*key, value)))
            .current_dir(rig.folder())
            // Ctrl-C only reaches the harness, which then stops the programs in order.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {}", program.as_ref()))?;
        let process = Self { name: name.to_owned(), child, log };
        leftovers::record(rig.folder(), process.id())?;
        Ok(process)
    }

    /// Returns the process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the path of its log.
    pub fn log_file(&self) -> &Path {
        &self.log
    }

    /// Returns its output so far.
    pub fn log(&self) -> String {
        fs::read(&self.log).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default()
    }

    /// Returns its standard input on the first call.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Returns true if it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Fails with the end of the log if the process no longer runs.
    ///
    /// # Errors
    /// The process has ended.
    pub fn check_running(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                let text = format!("{} ended ({status}): {}", self.name, self.last_words());
                Err(ProcessEnded(text).into())
            }
        }
    }

    /// Waits until the process ends by itself.
    ///
    /// # Errors
    /// The process still runs after `limit`.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let description = format!("end of {}", self.name);
        wait_for_value(&description, limit, || Ok(self.child.try_wait()?))
    }

    /// Kills it, as a crash would end it.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends SIGTERM and waits for the end of the process.
    ///
    /// # Errors
    /// The process still ran after a minute; then it was killed.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.signal(Signal::TERM);
        let deadline = Instant::now() + STOP_LIMIT;
        match self.wait(deadline.saturating_duration_since(Instant::now())) {
            Ok(status) => Ok(status),
            Err(error) => {
                self.kill();
                Err(error)
            }
        }
    }

    /// Sends a signal if it still runs.
    pub fn signal(&mut self, signal: Signal) {
        if self.is_running() {
            if let Some(id) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process(id, signal);
            }
        }
    }

    /// Returns the CPU time of all threads of the process.
    ///
    /// # Errors
    /// The process no longer runs.
    pub fn cpu_time(&self) -> Result<Duration> {
        Ok(cpu_time_in(&fs::read_to_string(format!("/proc/{}/stat", self.id()))?)?.1)
    }

    /// Returns the CPU time of the threads of the process whose names begin with `prefix`.
    ///
    /// # Errors
    /// The process no longer runs, or has no such thread.
    pub fn threads_cpu_time(&self, prefix: &str) -> Result<Duration> {
        let mut used = None;
        for thread in fs::read_dir(format!("/proc/{}/task", self.id()))? {
            // A thread that has just ended is skipped.
            let Ok(stat) = fs::read_to_string(thread?.path().join("stat")) else { continue };
            let (name, time) = cpu_time_in(&stat)?;
            if name.starts_with(prefix) {
                used = Some(used.unwrap_or_default() + time);
            }
        }
        used.with_context(|| format!("{} has no thread {prefix}", self.name))
    }

    /// Returns the last lines of the log.
    pub fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_running() {
            let _ = self.stop();
        }
    }
}

/// Returns name and CPU time from `/proc/PID/stat` (proc(5)).
fn cpu_time_in(stat: &str) -> Result<(&str, Duration)> {
    let (before, fields) = stat.rsplit_once(") ").context("no stat")?;
    let (_, name) = before.split_once('(').context("no name")?;
    // utime and stime are fields 14 and 15; the first one here is field 3.
    let ticks: u64 =
        fields.split(' ').skip(11).take(2).map(|f| f.parse::<u64>().unwrap_or(0)).sum();
    Ok((name, Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())))
}
