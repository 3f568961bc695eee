//! Profile of CPU time by module during a measurement: `perf` samples all CPUs.
//!
//! A [`Profiler`] belongs to one repetition of a case. It starts `perf` when the experiment first
//! enables it, and samples are taken only while it is enabled:
//!
//! ```text
//! new ──enable()──▶ sampling ──disable()──▶ waiting ──end()──▶ Profile
//!                      ▲────────enable()───────┘
//! ```
//!
//! Failures of `perf` do not affect the measurement and are reported at the end.

mod modules;

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use suimon_lab_experiments::{CpuProfiler, Requirement};
use suimon_lab_run::Profile;
use suimon_rig::{Process, Rig, run_any};

pub(crate) use modules::KERNEL_OTHER;

/// Requirement of runs with profiles: the program `perf`.
pub(crate) const PERF: Requirement = Requirement::Program { name: "perf", package: "linux-perf" };

/// Samples per CPU and second. An odd number avoids synchronization with timers.
const SAMPLES_PER_S: u32 = 499;

/// Largest size in MiB of the file of samples in the work folder.
const SAMPLES_MIB_MAX: u32 = 256;

/// Time limit for `perf` to respond to a command.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for `perf` to summarise the samples.
const REPORT_LIMIT: Duration = Duration::from_secs(120);

/// Response of `perf` when it has executed a command.
const DONE: &[u8] = b"ack\n";

/// Profiler that runs during one repetition of a case.
pub(crate) struct Profiler {
    folder: PathBuf,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    perf: Option<Perf>,
    /// Start of the current sampling; `None` while sampling is disabled.
    enabled: Option<Instant>,
    measured: Duration,
    failure: Option<anyhow::Error>,
}

impl Profiler {
    /// Returns a profiler for one repetition. It stores samples in `folder` and removes them at its
    /// end.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), state: RefCell::default() }
    }

    /// Ends profiling and returns the profile; `None` if it was never enabled.
    ///
    /// # Errors
    /// `perf` does not start or does not execute a command.
    pub(crate) fn end(self) -> Result<Option<Profile>> {
        let state = self.state.into_inner();
        if let Some(failure) = state.failure {
            return Err(failure);
        }
        let Some(perf) = state.perf else { return Ok(None) };
        let report = perf.end()?;
        let seconds = state.measured.as_secs_f64();
        let modules = modules::parse_perf_report(&report, 1.0 / f64::from(SAMPLES_PER_S))?;
        Ok(Some(Profile { duration_s: seconds, modules }))
    }

    /// Sends `perf` the command that enables or disables sampling. Has no effect after a failure.
    fn switch(&self, command: &str) {
        let mut state = self.state.borrow_mut();
        if state.failure.is_some() {
            return;
        }
        if let Err(error) = state.send_command(&self.folder, command) {
            state.failure = Some(error);
        }
    }
}

impl State {
    fn send_command(&mut self, folder: &Path, command: &str) -> Result<()> {
        let perf = match &mut self.perf {
            Some(perf) => perf,
            absent => absent.insert(Perf::start(folder)?),
        };
        perf.send_command(command)
    }
}

impl CpuProfiler for Profiler {
    fn enable(&self) {
        self.switch("enable");
        self.state.borrow_mut().enabled = Some(Instant::now());
    }

    fn disable(&self) {
        let enabled = self.state.borrow_mut().enabled.take();
        self.state.borrow_mut().measured +=
            enabled.map_or(Duration::ZERO, |enabled_at| enabled_at.elapsed());
        self.switch("disable");
    }
}

/// Process of `perf record`, controlled through pipes.
struct Perf {
    process: Process,
    control: File,
    replies: File,
    rig: Rig,
}

impl Perf {
    fn start(folder: &Path) -> Result<Self> {
        let rig = Rig::new_in(folder)?;
        for name in ["control", "answers"] {
            let mode = Mode::RUSR | Mode::WUSR;
            mknodat(CWD, rig.file(name), FileType::Fifo, mode, 0)
                .context("cannot create a pipe to perf")?;
        }
        // Opened for reading and writing, so that opening does not block.
        let open = |name| OpenOptions::new().read(true).write(true).open(rig.file(name));
        let (control, answers) = (open("control")?, open("answers")?);
        let (rate, size) = (SAMPLES_PER_S.to_string(), format!("{SAMPLES_MIB_MAX}M"));
        let pipes = format!("fifo:{},{}", rig.path("control"), rig.path("answers"));
        // `I` excludes idle CPUs.
        let command = [
            "perf",
            "record",
            "--quiet",
            "--all-cpus",
            "--no-buildid",
            "--event",
            "cpu-clock:I",
            "--freq",
            &rate,
            "--delay",
            "-1",
            "--control",
            &pipes,
            "--max-size",
            &size,
            "--output",
            &rig.path("samples"),
        ];
        let process = Process::start(&rig, "perf", &command)?;
        Ok(Self { process, control, replies: answers, rig })
    }

    fn send_command(&mut self, command: &str) -> Result<()> {
        self.control.write_all(format!("{command}\n").as_bytes()).context("perf's pipe")?;
        let deadline = Instant::now() + RESPONSE_TIMEOUT;
        let mut answer = Vec::new();
        while !answer.starts_with(DONE) {
            let remaining = deadline.saturating_duration_since(Instant::now());
            self.process.check_running()?;
            ensure!(!remaining.is_zero(), "perf does not respond: {}", self.process.last_words());
            let step = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let mut waiting = [PollFd::new(&self.replies, PollFlags::IN)];
            if poll(&mut waiting, Some(&step))? > 0 {
                let mut bytes = [0; 16];
                let count = self.replies.read(&mut bytes)?;
                // A zero byte terminates each response.
                answer.extend(bytes.iter().take(count).filter(|byte| **byte != 0));
            }
        }
        Ok(())
    }

    /// Ends sampling and returns the report in the format read by [`modules::parse_perf_report`].
    fn end(mut self) -> Result<String> {
        self.process.stop()?;
        let samples = self.rig.path("samples");
        let command = [
            "perf",
            "report",
            "--input",
            &samples,
            "--stdio",
            "--quiet",
            "--call-graph",
            "none",
            "--sort",
            "dso,sym",
            "--fields",
            "sample,dso,sym",
            "--field-separator",
            "|",
        ];
        let output = run_any(&command, REPORT_LIMIT)?;
        if !output.is_ok() {
            bail!("perf report: {}", output.stderr.trim());
        }
        Ok(output.stdout)
    }
}
