//! `suimon lab work`: does what was asked for through the API.
//!
//! The daemon may start nothing. Who asks it for a run has a file put into the folder of results,
//! and this, which runs beside the daemon with the rights that experiments need, takes it:
//!
//! ```text
//! requests/ID.json  {"plan": "web", "scale": "quick"}   by the daemon
//! requests/ID.stop                                       by the daemon: the run is to end
//! requests/ID.done  {"run": "web-…"} or {"error": "…"}   by this, in place of both
//! plans.json        what can be asked for                by this, when it begins
//! worker.json       {"pid": …, "at_ms": …}               by this, every two seconds
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};
use suimon_rig::StopSignal;

use crate::cli::ResultsFlags;
use crate::plan::{SHIPPED, Scale, check_id};
use crate::shown::plans;

/// How often it is looked for requests.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// How often it is told that this is there.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// A request that is longer was not written by the daemon.
const REQUEST_BYTES_MAX: u64 = 4096;

/// Whose requests.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkFlags {
    #[command(flatten)]
    results: ResultsFlags,
    /// Where disks and other large files are made, and removed.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    work_folder: PathBuf,
}

/// What is asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    plan: String,
    scale: String,
}

impl WorkFlags {
    pub(crate) fn run(self) -> Result<()> {
        let folder = self.results.path().to_owned();
        let requests = folder.join("requests");
        fs::create_dir_all(&requests).with_context(|| requests.display().to_string())?;
        write(&folder.join("plans.json"), &plans()?)?;
        let stop = StopSignal::new()?;
        let mut told: Option<Instant> = None;
        while !stop.is_asked() {
            tell(&folder, &mut told)?;
            match next(&requests)? {
                Some(path) => self.serve(&path, &folder, &stop, &mut told)?,
                None => thread::sleep(LOOK_EVERY),
            }
        }
        Ok(())
    }

    /// Does one request, whatever is in it.
    fn serve(
        &self,
        path: &Path,
        folder: &Path,
        stop: &StopSignal,
        told: &mut Option<Instant>,
    ) -> Result<()> {
        let done = match self.start(path) {
            Ok(child) => finish(child, path, folder, stop, told),
            Err(error) => Err(error),
        };
        let done = match done {
            Ok(run) => json!({ "run": run }),
            Err(error) => json!({ "error": format!("{error:#}") }),
        };
        write(&path.with_extension("done"), &done)?;
        let _ = fs::remove_file(path.with_extension("stop"));
        fs::remove_file(path).with_context(|| path.display().to_string())
    }

    fn start(&self, path: &Path) -> Result<Child> {
        let bytes = fs::metadata(path)?.len();
        ensure!(bytes <= REQUEST_BYTES_MAX, "a request of {bytes} bytes");
        let request: Request = serde_json::from_slice(&fs::read(path)?)?;
        check_id("plan", &request.plan)?;
        let is_known = SHIPPED.iter().any(|(id, _)| *id == request.plan);
        ensure!(is_known, "there is no plan `{}`", request.plan);
        let Ok(scale) = Scale::from_str(&request.scale, false) else {
            bail!("there is no scale `{}`", request.scale)
        };
        let child = Command::new(std::env::current_exe()?)
            .args(["run", &request.plan, "--scale", scale.name(), "--json", "--results"])
            .arg(self.results.path())
            .arg("--work-folder")
            .arg(&self.work_folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(child)
    }
}

/// The oldest request.
fn next(requests: &Path) -> Result<Option<PathBuf>> {
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(requests).with_context(|| requests.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|of| of == "json") {
            found.push(path);
        }
    }
    // Ids are times.
    Ok(found.into_iter().min())
}

/// Waits until a run has ended; ends it if that is asked for. The run's id.
fn finish(
    mut child: Child,
    path: &Path,
    folder: &Path,
    stop: &StopSignal,
    told: &mut Option<Instant>,
) -> Result<String> {
    let mut is_stopping = false;
    while child.try_wait()?.is_none() {
        tell(folder, told)?;
        if !is_stopping && (stop.is_asked() || path.with_extension("stop").exists()) {
            is_stopping = true;
            if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        thread::sleep(LOOK_EVERY);
    }
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{}",
        said.lines().last().unwrap_or("it failed without a word")
    );
    let value: Value = serde_json::from_slice(&output.stdout)?;
    Ok(value["runs"][0].as_str().unwrap_or_default().to_owned())
}

fn tell(folder: &Path, told: &mut Option<Instant>) -> Result<()> {
    if told.is_some_and(|at| at.elapsed() < TELL_EVERY) {
        return Ok(());
    }
    *told = Some(Instant::now());
    let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |of| of.as_millis() as u64);
    write(&folder.join("worker.json"), &json!({ "pid": std::process::id(), "at_ms": at_ms }))
}

/// Whole or not at all.
fn write(path: &Path, value: &Value) -> Result<()> {
    let unfinished = path.with_extension("part");
    let write = || -> std::io::Result<()> {
        fs::write(&unfinished, serde_json::to_vec(value)?)?;
        fs::rename(&unfinished, path)
    };
    write().with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_request_is_first_and_other_files_are_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(next(folder.path()).unwrap(), None);
        for name in ["20260102.json", "20260101.json", "20260101.done", "x.part"] {
            fs::write(folder.path().join(name), "{}").unwrap();
        }
        assert_eq!(next(folder.path()).unwrap().unwrap().file_name().unwrap(), "20260101.json");
    }

    #[test]
    fn what_the_daemon_would_not_ask_for_is_not_done() {
        let folder = tempfile::tempdir().unwrap();
        let flags =
            WorkFlags { results: ResultsFlags::of(folder.path()), work_folder: "/var/tmp".into() };
        let path = folder.path().join("1.json");
        for (text, expected) in [
            ("{\"plan\": \"../x\", \"scale\": \"quick\"}", "plan"),
            ("{\"plan\": \"/tmp/plan.toml\", \"scale\": \"quick\"}", "plan"),
            ("{\"plan\": \"webb\", \"scale\": \"quick\"}", "no plan `webb`"),
            ("{\"plan\": \"vmq-teaming\", \"scale\": \"--help\"}", "no scale"),
            ("{\"plan\": \"vmq-teaming\", \"scale\": \"quick\", \"more\": 1}", "more"),
            ("[", "EOF"),
        ] {
            fs::write(&path, text).unwrap();
            let error = format!("{:#}", flags.start(&path).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
        fs::write(&path, vec![b' '; 5000]).unwrap();
        assert!(flags.start(&path).unwrap_err().to_string().contains("5000 bytes"));
    }
}
