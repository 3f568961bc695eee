//! What every kind of experiment is to the lab.

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

/// How often somebody who waits looks whether he is asked to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A kind of experiment, made for the settings of a plan.
pub(crate) trait Experiment {
    /// What the machine must have.
    fn needs(&self) -> Vec<Need>;

    /// What is set up here, in sentences: of the report.
    fn setup(&self) -> Vec<Words>;

    /// What is compared, in the order in which it is shown; at least one.
    fn cases(&self) -> Vec<Case>;

    /// What the parts' values are of.
    fn measures(&self) -> Vec<Measure>;

    /// Sets a case up, measures once, and takes it down. What was set up may be kept for the
    /// next part; dropping the experiment takes it down.
    fn run(&mut self, case: &Case, desk: &Desk<'_>) -> Result<Part>;
}

/// Something that a machine has or has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A program, and Debian's package that has it.
    Program { name: &'static str, package: &'static str },
    /// A file of the system, and Debian's package that has it.
    File { path: &'static str, package: &'static str },
    /// A program of Suimon, or an example that is built beside it.
    Own(&'static str),
    /// Free space in the folder in which experiments make their files.
    FreeMib(u64),
}

/// Where an experiment is done.
pub(crate) struct Desk<'a> {
    stop: &'a StopSignal,
    /// In which disks and other large files are made.
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

    /// Counts to what CPU time goes until what is returned is dropped, if the user wants that. What
    /// values are of is to be measured meanwhile.
    pub(crate) fn profile(&self) -> Window<'a> {
        Window::open(self.profiler)
    }

    /// A rig whose folder is in memory or wherever `/tmp` is: for sockets and settings.
    pub(crate) fn rig(&self) -> Result<Rig> {
        Rig::new()
    }

    /// A rig whose folder is where disks and other large files are to be.
    pub(crate) fn large_rig(&self) -> Result<Rig> {
        Rig::new_in(self.folder)
    }

    /// Tells the user what goes on.
    pub(crate) fn say(&self, text: &str) {
        (self.say)(text);
    }

    /// Fails if it is time to stop. Call it wherever something took long.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(!self.stop.is_asked(), "asked to stop");
        Ok(())
    }

    /// Waits, or fails at once if it is time to stop.
    pub(crate) fn wait(&self, time: Duration) -> Result<()> {
        self.wait_until(Instant::now() + time)
    }

    /// Waits until a program has ended by itself; fails at once if it is time to stop.
    pub(crate) fn wait_for(&self, process: &mut Process, limit: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + limit;
        while process.is_running() {
            ensure!(
                Instant::now() < deadline,
                "it goes on after {} s: {}",
                limit.as_secs(),
                process.last_words()
            );
            self.wait(LOOK_EVERY)?;
        }
        process.wait(LOOK_EVERY)
    }

    /// Calls `look` at the end of each of so many seconds.
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
    /// What is missing, if it is, and how to get it.
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
                        format!("{mib} MiB are needed in {shown}, and {free} are free; name another folder with --work-folder"),
                        format!("{shown} に {mib} MiB 必要ですが、空きは {free} MiB です。--work-folder で別の場所を指定してください"),
                    )
                })
            }
        }
    }

    /// Debian's package, if it is one.
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

/// Free space for others than root, in MiB; none if the folder cannot be asked.
pub(crate) fn free_mib(folder: &Path) -> Option<u64> {
    let mut asked: PathBuf = folder.to_owned();
    // One that is made later is asked where it will be.
    while fs::metadata(&asked).is_err() {
        if !asked.pop() {
            return None;
        }
    }
    let of = rustix::fs::statvfs(&asked).ok()?;
    Some(of.f_bavail.saturating_mul(of.f_frsize) >> 20)
}
