//! Interface between the lab and each kind of experiment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use suimon_rig::{Process, Rig, StopSignal};

use crate::profile::{Profiler, Window};
use crate::record::{Case, Measure, Part};
use crate::words::Words;

/// Interval of checks for a stop request while waiting.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Kind of experiment with the settings of a plan.
pub(crate) trait Experiment {
    /// Returns the requirements on the machine.
    fn needs(&self) -> Vec<Need>;

    /// Returns a description of the setup in sentences, for the report.
    fn setup(&self) -> Vec<Words>;

    /// Returns the cases to compare in order of display; at least one.
    fn cases(&self) -> Vec<Case>;

    /// Returns the measures of which parts contain values.
    fn measures(&self) -> Vec<Measure>;

    /// Sets a case up, measures once, and takes it down. The setup may be kept for the next part;
    /// dropping the experiment takes it down.
    fn run(&mut self, case: &Case, desk: &Desk<'_>) -> Result<Part>;
}

/// Requirement of an experiment on the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Program, with the Debian package that contains it.
    Program { name: &'static str, package: &'static str },
    /// File of the system, with the Debian package that contains it.
    File { path: &'static str, package: &'static str },
    /// Program of Suimon, or an example built beside it.
    Own(&'static str),
    /// Free space in MiB in the folder for large files.
    FreeMib(u64),
}

/// Environment in which an experiment is executed.
pub(crate) struct Desk<'a> {
    stop: &'a StopSignal,
    /// Folder for disks and other large files.
    folder: &'a Path,
    profiler: Option<&'a Profiler>,
    say: &'a dyn Fn(&str),
}

impl<'a> Desk<'a> {
    pub(crate) fn new(
        stop: &'a StopSignal,
        folder: &'a Path,
        profiler: Option<&'a Profiler>,
        say: &'a dyn Fn(&str),
    ) -> Self {
        Self { stop, folder, profiler, say }
    }

    /// Profiles CPU time until the result is dropped, if requested by the user. The measurement
    /// should take place meanwhile.
    pub(crate) fn profile(&self) -> Window<'a> {
        Window::open(self.profiler)
    }

    /// Creates a rig with a temporary folder for sockets and settings.
    pub(crate) fn rig(&self) -> Result<Rig> {
        Rig::new()
    }

    /// Creates a rig with a folder for disks and other large files.
    pub(crate) fn large_rig(&self) -> Result<Rig> {
        Rig::new_in(self.folder)
    }

    /// Shows a message about the progress.
    pub(crate) fn say(&self, text: &str) {
        (self.say)(text);
    }

    /// Fails if a stop was requested. Must be called after each long operation.
    pub(crate) fn check(&self) -> Result<()> {
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
            self.wait(LOOK_EVERY)?;
        }
        process.wait(LOOK_EVERY)
    }

    /// Calls `look` at the end of each of the given number of seconds.
    pub(crate) fn each_second(
        &self,
        seconds: u64,
        mut look: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let began = Instant::now();
        for number in 1..=seconds {
            self.wait_until(began + Duration::from_secs(number))?;
            look()?;
        }
        Ok(())
    }

    fn wait_until(&self, ends: Instant) -> Result<()> {
        loop {
            self.check()?;
            let left = ends.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
    }
}

impl Need {
    /// Returns what is missing and how to get it; `None` if the requirement is met.
    pub(crate) fn missing(&self, folder: &Path) -> Option<Words> {
        match self {
            Self::Program { name, package } => {
                let is_there = suimon_rig::system_program(name).is_ok();
                (!is_there).then(|| missing(name, package))
            }
            Self::File { path, package } => {
                (!Path::new(path).exists()).then(|| missing(path, package))
            }
            Self::Own(name) => {
                let path = match name.strip_prefix("examples/") {
                    Some(name) => suimon_rig::example(name),
                    None => suimon_rig::program(name),
                };
                path.err().map(|error| Words::same(format!("{error:#}")))
            }
            Self::FreeMib(mib) => {
                let free = free_mib(folder)?;
                (free < *mib).then(|| {
                    let shown = folder.display();
                    Words::new(
                        format!(
                            "{shown} needs {mib} MiB of free space and has {free} MiB; name \
                             another folder with --work-folder"),
                        format!("{shown} に {mib} MiB 必要ですが、空きは {free} MiB です。--work-folder \
                                 で別の場所を指定してください"),
                    )
                })
            }
        }
    }

    /// Returns the Debian package that satisfies the requirement, if any.
    pub(crate) fn package(&self) -> Option<&'static str> {
        match self {
            Self::Program { package, .. } | Self::File { package, .. } => Some(package),
            Self::Own(_) | Self::FreeMib(_) => None,
        }
    }
}

fn missing(name: &str, package: &str) -> Words {
    Words::new(
        format!("{name} is not installed; `suimon lab setup` installs {package}"),
        format!("{name} がありません。`suimon lab setup` が {package} を入れます"),
    )
}

/// Returns the free space for unprivileged users in MiB; `None` if it cannot be determined.
pub(crate) fn free_mib(folder: &Path) -> Option<u64> {
    let mut asked: PathBuf = folder.to_owned();
    // For a folder that does not exist yet, the nearest existing parent is examined.
    while fs::metadata(&asked).is_err() {
        if !asked.pop() {
            return None;
        }
    }
    let of = rustix::fs::statvfs(&asked).ok()?;
    Some(of.f_bavail.saturating_mul(of.f_frsize) >> 20)
}
