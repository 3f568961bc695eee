//! Requested run in a process of its own.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use suimon_lab_run::Language;
use suimon_lab_run::folder::RequestResult;

use crate::plan::Scale;
use crate::report;
use crate::results::ResultsFolder;
use crate::shared_flags::ResultsFlags;
use crate::supervision::WORK_COMMAND_PID_VARIABLE;

/// Largest number of bytes at the end of the process's output that are read for an error message.
const OUTPUT_BYTES_MAX: u64 = 4096;

/// Run in progress, and the process that executes it.
pub(super) struct Job {
    child: Child,
    results: ResultsFolder,
    plan: String,
    /// Ids of the runs that existed before this one.
    before: BTreeSet<String>,
    run: Option<String>,
    /// Output of the process. A file, so that the process never blocks on it.
    output: File,
    exit_status: Option<ExitStatus>,
    is_stopping: bool,
}

/// Run requested by the API.
#[derive(Debug)]
pub(super) struct RequestedRun {
    /// Name of a shipped plan.
    pub(super) plan: String,
    pub(super) scale: Scale,
    pub(super) profile: bool,
}

impl Job {
    pub(super) fn start(
        flags: &ResultsFlags,
        work_folder: &Path,
        requested: RequestedRun,
    ) -> Result<Self> {
        let results = flags.folder();
        let before = results.ids()?.into_iter().collect();
        let output = tempfile::tempfile()
            .context("cannot create a temporary file for the output of the run")?;
        let child = Command::new(std::env::current_exe()?)
            .args([
                "run",
                &requested.plan,
                "--scale",
                requested.scale.name(),
                "--json",
                "--results",
            ])
            .arg(flags.path())
            .arg("--work-folder")
            .arg(work_folder)
            .args(requested.profile.then_some("--profile"))
            .env(WORK_COMMAND_PID_VARIABLE, std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output.try_clone()?)
            .spawn()?;
        let plan = requested.plan;
        Ok(Self {
            child,
            results,
            plan,
            before,
            run: None,
            output,
            exit_status: None,
            is_stopping: false,
        })
    }

    pub(super) fn has_ended(&mut self) -> Result<bool> {
        self.exit_status = self.child.try_wait()?;
        Ok(self.exit_status.is_some())
    }

    /// Returns the id of the run, once its folder exists.
    pub(super) fn run_id(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// Searches the results for the folder of the run. Returns true if this call found it.
    pub(super) fn find_run(&mut self) -> Result<bool> {
        if self.run.is_some() {
            return Ok(false);
        }
        let is_of_plan = |id: &String| id.starts_with(&format!("{}-", self.plan));
        let ids = self.results.ids()?;
        self.run = ids.into_iter().find(|id| !self.before.contains(id) && is_of_plan(id));
        Ok(self.run.is_some())
    }

    /// Requests an orderly end of the process (SIGTERM). Further calls have no effect.
    pub(super) fn stop(&mut self) {
        if self.is_stopping {
            return;
        }
        self.is_stopping = true;
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Returns the result of the ended process. If the run is incomplete, writes a report about the
    /// completed repetitions first.
    pub(super) fn finish(mut self) -> RequestResult {
        let found_run = self.find_run();
        let is_whole = self.exit_status.is_some_and(|status| status.success());
        let mut error = (!is_whole).then(|| self.last_output_line());
        if let (None, Err(error_text)) = (&error, found_run) {
            error = Some(format!("{error_text:#}"));
        }
        let reported = self
            .run
            .as_deref()
            .map(|id| report::write_report_files(&self.results.find(id)?, Language::En));
        if let (None, Some(Err(error_text))) = (&error, reported) {
            error = Some(format!("the report cannot be written: {error_text:#}"));
        }
        RequestResult { run_id: self.run, error }
    }

    fn last_output_line(&mut self) -> String {
        let mut read = || -> std::io::Result<Vec<u8>> {
            let start = self.output.metadata()?.len().saturating_sub(OUTPUT_BYTES_MAX);
            self.output.seek(SeekFrom::Start(start))?;
            let mut bytes = Vec::new();
            self.output.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().unwrap_or_default();
        let output = String::from_utf8_lossy(&bytes);
        let last = output.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.map(|line| line.strip_prefix("suimon lab: ").unwrap_or(line).to_owned());
        last.unwrap_or_else(|| match self.exit_status {
            Some(status) => format!("the run ended without an error message: {status}"),
            None => "the run ended without an error message".to_owned(),
        })
    }
}
