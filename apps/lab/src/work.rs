//! Command `suimon lab work`: carries out requests made through the API.
//!
//! The confined daemon cannot start programs. For a requested run it writes a file into the folder
//! of results. This process, which runs beside the daemon with the privileges that experiments
//! need, carries it out:
//!
//! ```text
//! requests/ID.json  {"plan": "web", "scale": "quick"}   by the daemon
//! requests/ID.stop                                       by the daemon: cancels the run
//! requests/ID.done  {"run": "web-…"} or {"error": "…"}   by the worker, replaces both
//! plans.json        plans that can be requested          by the worker, repeatedly
//! worker.json       {"pid": …, "at_ms": …}               by the worker, every two seconds
//! ```
//!
//! `formats/lab` defines the contents of these files. One worker at a time uses a folder.

mod job;
mod stop;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use suimon_lab_run::folder::{Done, PLANS, REQUESTS, Request, WORKER, Worker};
use suimon_rig::StopSignal;

use crate::cli::{ResultsFlags, WORK_FOLDER};
use crate::plan::{SHIPPED, Scale, check_id};
use crate::results::hold;
use crate::shown::plans;
use job::{Job, Wanted};
pub(crate) use stop::StopFlags;

/// Interval of checks for requests.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Interval of heartbeats in `worker.json`.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// Interval of checks of the plans' requirements while idle.
const PLANS_EVERY: Duration = Duration::from_secs(10);

/// Largest accepted request file in bytes.
const REQUEST_BYTES_MAX: u64 = 4096;

/// Number of ended requests that are kept.
const ENDED_KEPT: usize = 16;

/// Arguments of `work`.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkFlags {
    #[command(flatten)]
    results: ResultsFlags,
    /// Folder for disks and other large files of experiments, which are removed at their end.
    #[arg(long, value_name = "DIR", default_value = WORK_FOLDER)]
    work_folder: PathBuf,
}

/// State of the worker between requests.
struct Doer<'w> {
    flags: &'w WorkFlags,
    requests: PathBuf,
    stop: StopSignal,
    told: Option<Instant>,
    listed: Option<Instant>,
}

impl WorkFlags {
    pub(crate) fn run(self) -> Result<()> {
        let requests = self.results.path().join(REQUESTS);
        fs::create_dir_all(&requests).with_context(|| requests.display().to_string())?;
        let _held = hold(&requests)?.with_context(|| {
            format!("another `suimon lab work` process uses {}", self.results.path().display())
        })?;
        let stop = StopSignal::new()?;
        let mut worker = Doer { flags: &self, requests, stop, told: None, listed: None };
        while !worker.stop.is_asked() {
            worker.list_plans()?;
            worker.tell(None)?;
            worker.withdraw_all(None)?;
            match next(&worker.requests)? {
                Some(path) => worker.serve(&path)?,
                None => thread::sleep(LOOK_EVERY),
            }
        }
        Ok(())
    }

    /// Reads and checks a request.
    fn read(&self, path: &Path) -> Result<Wanted> {
        let bytes = fs::metadata(path)?.len();
        ensure!(bytes <= REQUEST_BYTES_MAX, "a request of {bytes} bytes exceeds the limit");
        let request: Request = serde_json::from_slice(&fs::read(path)?)?;
        check_id("plan", &request.plan)?;
        let is_known = SHIPPED.iter().any(|(id, _)| *id == request.plan);
        ensure!(is_known, "there is no plan `{}`", request.plan);
        let Ok(scale) = Scale::from_str(&request.scale, false) else {
            bail!("there is no scale `{}`", request.scale)
        };
        Ok(Wanted { plan: request.plan, scale, profile: request.profile })
    }
}

impl Doer<'_> {
    /// Carries out one request, valid or not.
    fn serve(&mut self, path: &Path) -> Result<()> {
        let done = match self.flags.read(path) {
            Ok(wanted) => self.make(path, wanted)?,
            Err(error) => failed(&error),
        };
        end(path, &done)?;
        forget_old(&self.requests)
    }

    /// Makes a run, and cancels it on request.
    fn make(&mut self, path: &Path, wanted: Wanted) -> Result<Done> {
        let (results, work_folder) = (&self.flags.results, &self.flags.work_folder);
        let mut job = match Job::start(results, work_folder, wanted) {
            Ok(job) => job,
            Err(error) => return Ok(failed(&error)),
        };
        let id = path.file_stem().map(|of| of.to_string_lossy().into_owned());
        while !job.has_ended()? {
            let is_new = job.find_run()?;
            if is_new {
                self.told = None;
            }
            self.tell(Some((id.as_deref(), job.run())))?;
            self.withdraw_all(Some(path))?;
            if self.stop.is_asked() || path.with_extension("stop").exists() {
                job.stop();
            }
            thread::sleep(LOOK_EVERY);
        }
        self.told = None;
        Ok(job.done())
    }

    /// Ends withdrawn requests, except one.
    fn withdraw_all(&self, but: Option<&Path>) -> Result<()> {
        for path in with_extension(&self.requests, "stop")? {
            let request = path.with_extension("json");
            if but == Some(request.as_path()) {
                continue;
            }
            if request.exists() {
                let error = Some("withdrawn before it started".to_owned());
                end(&request, &Done { run: None, error })?;
            } else {
                remove(&path)?;
            }
        }
        Ok(())
    }

    fn list_plans(&mut self) -> Result<()> {
        if self.listed.is_some_and(|at| at.elapsed() < PLANS_EVERY) {
            return Ok(());
        }
        self.listed = Some(Instant::now());
        write(&self.flags.results.path().join(PLANS), &plans(&self.flags.work_folder)?)
    }

    /// Writes the heartbeat with the current request and run.
    fn tell(&mut self, at: Option<(Option<&str>, Option<&str>)>) -> Result<()> {
        if self.told.is_some_and(|at| at.elapsed() < TELL_EVERY) {
            return Ok(());
        }
        self.told = Some(Instant::now());
        let at_ms =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |of| of.as_millis() as u64);
        let (request, run) = at.unwrap_or_default();
        let worker = Worker {
            pid: std::process::id(),
            at_ms,
            request: request.map(str::to_owned),
            run: run.map(str::to_owned),
        };
        write(&self.flags.results.path().join(WORKER), &worker)
    }
}

fn failed(error: &anyhow::Error) -> Done {
    Done { run: None, error: Some(format!("{error:#}")) }
}

/// Writes the result of a request, then removes the request, so that observers always see one of
/// them.
fn end(request: &Path, done: &Done) -> Result<()> {
    write(&request.with_extension("done"), done)?;
    remove(&request.with_extension("stop"))?;
    remove(request)
}

/// Removes the oldest ended requests.
fn forget_old(requests: &Path) -> Result<()> {
    let ended = with_extension(requests, "done")?;
    for path in ended.iter().take(ended.len().saturating_sub(ENDED_KEPT)) {
        remove(path)?;
    }
    Ok(())
}

/// Returns the oldest request.
fn next(requests: &Path) -> Result<Option<PathBuf>> {
    // Ids are times.
    Ok(with_extension(requests, "json")?.into_iter().next())
}

/// Returns the files with an extension, oldest first.
fn with_extension(requests: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(requests).with_context(|| requests.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|of| of == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Removes a file. A missing file is not an error.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| path.display().to_string())
        }
        _ => Ok(()),
    }
}

/// Writes a file atomically.
fn write(path: &Path, value: &impl Serialize) -> Result<()> {
    let unfinished = path.with_extension("part");
    let write = || -> std::io::Result<()> {
        fs::write(&unfinished, serde_json::to_vec(value)?)?;
        fs::rename(&unfinished, path)
    };
    write().with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests;
