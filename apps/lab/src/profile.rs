//! Where the CPUs' time goes while something is measured, by module: `perf` samples all CPUs.
//!
//! A [`Profiler`] is for one part. It starts `perf` with the first [`Window`] that is opened, and
//! counts only while one is open:
//!
//! ```text
//! new ──Window::open──▶ perf waits ──enable──▶ counts ──window dropped, disable──▶ perf waits ──end()──▶ Profile
//! ```
//!
//! What goes wrong with `perf` never spoils what is measured: it is told at the end.

mod modules;

pub(crate) use modules::KERNEL_OTHER;

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use suimon_rig::{Process, Rig, run_any};

use crate::experiment::Need;
use crate::record::Profile;

/// What it takes.
pub(crate) const PERF: Need = Need::Program { name: "perf", package: "linux-perf" };

/// Samples of each CPU in a second. Odd, so that it does not go along with timers.
const SAMPLES_PER_S: u32 = 499;

/// What samples may take in the work folder.
const SAMPLES_MIB_MAX: u32 = 256;

/// How long `perf` may take to answer, and to add samples up.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
const REPORT_LIMIT: Duration = Duration::from_secs(120);

/// What it says when it has done what it was told.
const DONE: &[u8] = b"ack\n";

/// Samples what one part does.
pub(crate) struct Profiler {
    folder: PathBuf,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    perf: Option<Perf>,
    measured: Duration,
    failure: Option<anyhow::Error>,
}

/// Samples are taken until this is dropped; if none are wanted, nothing happens.
pub(crate) struct Window<'a> {
    profiler: Option<&'a Profiler>,
    began: Instant,
}

impl Profiler {
    /// For a part; samples go to `folder` and are removed.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), state: RefCell::default() }
    }

    /// What the windows saw; none if there was no window.
    ///
    /// # Errors
    /// `perf` cannot be started or does not do what it is told.
    pub(crate) fn end(self) -> Result<Option<Profile>> {
        let state = self.state.into_inner();
        if let Some(failure) = state.failure {
            return Err(failure);
        }
        let Some(perf) = state.perf else { return Ok(None) };
        let told = perf.end()?;
        let seconds = state.measured.as_secs_f64();
        let modules = modules::sum_up(&told, 1.0 / f64::from(SAMPLES_PER_S))?;
        Ok(Some(Profile { seconds, modules }))
    }

    /// Lets `perf` count, or stops it. After a failure nothing is tried any more.
    fn switch(&self, word: &str) {
        let mut state = self.state.borrow_mut();
        if state.failure.is_some() {
            return;
        }
        if let Err(error) = state.tell(&self.folder, word) {
            state.failure = Some(error);
        }
    }
}

impl State {
    fn tell(&mut self, folder: &Path, word: &str) -> Result<()> {
        let perf = match &mut self.perf {
            Some(perf) => perf,
            none => none.insert(Perf::start(folder)?),
        };
        perf.tell(word)
    }
}

impl<'a> Window<'a> {
    /// Begins to count, if anybody wants that.
    pub(crate) fn open(profiler: Option<&'a Profiler>) -> Self {
        if let Some(profiler) = profiler {
            profiler.switch("enable");
        }
        Self { profiler, began: Instant::now() }
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        let Some(profiler) = self.profiler else { return };
        profiler.state.borrow_mut().measured += self.began.elapsed();
        profiler.switch("disable");
    }
}

/// `perf record`, which waits to be told.
struct Perf {
    process: Process,
    control: File,
    answers: File,
    rig: Rig,
}

impl Perf {
    fn start(folder: &Path) -> Result<Self> {
        let rig = Rig::new_in(folder)?;
        for name in ["control", "answers"] {
            let mode = Mode::RUSR | Mode::WUSR;
            mknodat(CWD, rig.file(name), FileType::Fifo, mode, 0).context("a pipe for perf")?;
        }
        // Opened both ways, so that neither waits for the other.
        let open = |name| OpenOptions::new().read(true).write(true).open(rig.file(name));
        let (control, answers) = (open("control")?, open("answers")?);
        let (rate, size) = (SAMPLES_PER_S.to_string(), format!("{SAMPLES_MIB_MAX}M"));
        let pipes = format!("fifo:{},{}", rig.path("control"), rig.path("answers"));
        // CPUs that have nothing to do are not sampled: `I`.
        let words = [
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
        let process = Process::start(&rig, "perf", &words)?;
        Ok(Self { process, control, answers, rig })
    }

    fn tell(&mut self, word: &str) -> Result<()> {
        self.control.write_all(format!("{word}\n").as_bytes()).context("perf's pipe")?;
        let deadline = Instant::now() + ANSWER_LIMIT;
        let mut answer = Vec::new();
        while !answer.starts_with(DONE) {
            let left = deadline.saturating_duration_since(Instant::now());
            self.process.check_running()?;
            ensure!(!left.is_zero(), "perf does not answer: {}", self.process.last_words());
            let step = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let mut waiting = [PollFd::new(&self.answers, PollFlags::IN)];
            if poll(&mut waiting, Some(&step))? > 0 {
                let mut bytes = [0; 16];
                let count = self.answers.read(&mut bytes)?;
                // A zero ends each of its answers.
                answer.extend(bytes.iter().take(count).filter(|byte| **byte != 0));
            }
        }
        Ok(())
    }

    /// Ends it; returns how often what was seen, as [`modules::sum_up`] reads it.
    fn end(mut self) -> Result<String> {
        self.process.stop()?;
        let samples = self.rig.path("samples");
        let words = [
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
        let output = run_any(&words, REPORT_LIMIT)?;
        if !output.is_ok() {
            bail!("perf report: {}", output.stderr.trim());
        }
        Ok(output.stdout)
    }
}
