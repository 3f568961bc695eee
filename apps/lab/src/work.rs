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
mod requests;
mod stop;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use suimon_lab_run::folder::{
    PLANS_FILE, REQUEST_SERVER_STATUS_FILE, REQUESTS_FOLDER, RequestResult, RequestServerStatus,
    RunRequest, check_id,
};
use suimon_rig::StopSignal;

use crate::list::plans;
use crate::plan::{SHIPPED_PLANS, Scale};
use crate::results::try_lock;
use crate::shared_flags::{ResultsFlags, WORK_FOLDER_DEFAULT};
use job::{Job, RequestedRun};
use requests::{complete, files_with_extension, next, remove, remove_old_results, write};
pub(crate) use stop::StopFlags;

/// Interval of checks for requests.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Interval at which the worker writes its heartbeat to `worker.json`.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);

/// Interval at which an idle worker checks the requirements of the plans.
const PLANS_INTERVAL: Duration = Duration::from_secs(10);

/// Largest accepted request file in bytes.
const REQUEST_BYTES_MAX: u64 = 4096;

/// Arguments of `work`.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkFlags {
    #[command(flatten)]
    results: ResultsFlags,
    /// Folder for disks and other large files of experiments, which are removed at their end.
    #[arg(long, value_name = "DIR", default_value = WORK_FOLDER_DEFAULT)]
    work_folder: PathBuf,
}

/// State of the worker that lasts from request to request.
struct RequestLoop<'w> {
    flags: &'w WorkFlags,
    requests: PathBuf,
    stop: StopSignal,
    heartbeat_at: Option<Instant>,
    plans_listed_at: Option<Instant>,
}

impl WorkFlags {
    pub(crate) fn run(self) -> Result<()> {
        let requests = self.results.path().join(REQUESTS_FOLDER);
        fs::create_dir_all(&requests).with_context(|| requests.display().to_string())?;
        let _held = try_lock(&requests)?.with_context(|| {
            format!("another `suimon lab work` process uses {}", self.results.path().display())
        })?;
        let stop = StopSignal::new()?;
        let mut worker =
            RequestLoop { flags: &self, requests, stop, heartbeat_at: None, plans_listed_at: None };
        while !worker.stop.is_asked() {
            worker.list_plans()?;
            worker.write_heartbeat(None)?;
            worker.withdraw_all(None)?;
            match next(&worker.requests)? {
                Some(path) => worker.serve(&path)?,
                None => thread::sleep(POLL_INTERVAL),
            }
        }
        Ok(())
    }

    /// Reads and checks a request.
    fn read(&self, path: &Path) -> Result<RequestedRun> {
        let bytes = fs::metadata(path)?.len();
        ensure!(bytes <= REQUEST_BYTES_MAX, "a request of {bytes} bytes exceeds the limit");
        let request: RunRequest = serde_json::from_slice(&fs::read(path)?)?;
        check_id("plan", &request.plan_id)?;
        let is_known = SHIPPED_PLANS.iter().any(|(id, _)| *id == request.plan_id);
        ensure!(
            is_known,
            "there is no plan `{}`; `suimon lab list` lists the plans",
            request.plan_id
        );
        let Ok(scale) = Scale::from_str(&request.scale, false) else {
            bail!("there is no scale `{}`; use auto, quick or full", request.scale)
        };
        Ok(RequestedRun { plan: request.plan_id, scale, profile: request.profile })
    }
}

impl RequestLoop<'_> {
    /// Executes one request and writes its result. An invalid request results in an error.
    fn serve(&mut self, path: &Path) -> Result<()> {
        let result = match self.flags.read(path) {
            Ok(requested) => self.execute(path, requested)?,
            Err(error) => failed_result(&error),
        };
        complete(path, &result)?;
        remove_old_results(&self.requests)
    }

    /// Executes a requested run until it ends or its request is withdrawn.
    fn execute(&mut self, path: &Path, requested: RequestedRun) -> Result<RequestResult> {
        let (results, work_folder) = (&self.flags.results, &self.flags.work_folder);
        let mut job = match Job::start(results, work_folder, requested) {
            Ok(job) => job,
            Err(error) => return Ok(failed_result(&error)),
        };
        let id = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        while !job.has_ended()? {
            let is_new = job.find_run()?;
            if is_new {
                self.heartbeat_at = None;
            }
            self.write_heartbeat(Some((id.as_deref(), job.run_id())))?;
            self.withdraw_all(Some(path))?;
            if self.stop.is_asked() || path.with_extension("stop").exists() {
                job.stop();
            }
            thread::sleep(POLL_INTERVAL);
        }
        self.heartbeat_at = None;
        Ok(job.finish())
    }

    /// Writes results for requests that were withdrawn before they started, and removes them. Skips
    /// the request `but`, which is in progress.
    fn withdraw_all(&self, but: Option<&Path>) -> Result<()> {
        for path in files_with_extension(&self.requests, "stop")? {
            let request = path.with_extension("json");
            if but == Some(request.as_path()) {
                continue;
            }
            if request.exists() {
                let error = Some("withdrawn before it started".to_owned());
                complete(&request, &RequestResult { run_id: None, error })?;
            } else {
                remove(&path)?;
            }
        }
        Ok(())
    }

    fn list_plans(&mut self) -> Result<()> {
        if self.plans_listed_at.is_some_and(|listed_at| listed_at.elapsed() < PLANS_INTERVAL) {
            return Ok(());
        }
        self.plans_listed_at = Some(Instant::now());
        write(&self.flags.results.path().join(PLANS_FILE), &plans(&self.flags.work_folder)?)
    }

    /// Writes the heartbeat if its interval has passed. `position` has the ids of the current
    /// request and of its run, if known.
    fn write_heartbeat(&mut self, position: Option<(Option<&str>, Option<&str>)>) -> Result<()> {
        if self.heartbeat_at.is_some_and(|heartbeat_at| heartbeat_at.elapsed() < HEARTBEAT_INTERVAL)
        {
            return Ok(());
        }
        self.heartbeat_at = Some(Instant::now());
        let at_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |elapsed| elapsed.as_millis() as u64);
        let (request, run) = position.unwrap_or_default();
        let worker = RequestServerStatus {
            pid: std::process::id(),
            updated_unix_ms: at_ms,
            request: request.map(str::to_owned),
            run: run.map(str::to_owned),
        };
        write(&self.flags.results.path().join(REQUEST_SERVER_STATUS_FILE), &worker)
    }
}

fn failed_result(error: &anyhow::Error) -> RequestResult {
    RequestResult { run_id: None, error: Some(format!("{error:#}")) }
}

#[cfg(test)]
mod tests;
