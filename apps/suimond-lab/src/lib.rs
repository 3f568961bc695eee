//! Lab: experiment runs in a folder, carried out by another program.
//!
//! The confined daemon cannot start programs. It writes requests into the folder of results;
//! `suimon lab work`, a separate process, carries them out; the daemon reads the results from the
//! folder. `formats/lab` defines the files. [`Lab`] is the only interface; its calls block.
//!
//! Invariant: the folder's content is untrusted. Names cannot lead out of it, symbolic links are
//! not followed, sizes are bounded, and errors name the file.
#![forbid(unsafe_code)]

mod comparison;
mod folder;
mod json_file;
mod request_list;
mod requests;
mod run_id;
mod runs;
mod worker;

use std::path::PathBuf;
use std::sync::Mutex;

use suimon_contract::{
    ApiError, ErrorCode, LabConfig, LabRun, LabRunDetails, LabStatus, LabWorker,
};
use suimon_lab_run::folder::is_valid_id;

use crate::run_id::printable_id;
use crate::worker::{find_running_worker, read_plans};
use folder::Folder;
use runs::RunCache;

/// Message about a missing worker, with the action to take.
const NOBODY: &str = "no lab worker is running; start it with `systemctl start suimon-lab`, or \
                      run `suimon lab work` as root";

/// Lab with its folder of results.
pub struct Lab {
    results: PathBuf,
    /// Cache of runs, valid while their files are unchanged.
    listed: Mutex<RunCache>,
    /// Lock that serializes submissions of requests, which check the number of requests and choose
    /// a free name.
    asking: Mutex<()>,
    /// Lock that serializes comparisons, each of which needs much memory.
    comparing: Mutex<()>,
}

impl Lab {
    /// Returns the lab configured by `[lab]`, or the default one.
    pub fn new(config: Option<&LabConfig>) -> Self {
        let results = config.cloned().unwrap_or_default().results;
        Self {
            results,
            listed: Mutex::default(),
            asking: Mutex::default(),
            comparing: Mutex::default(),
        }
    }

    /// Returns plans, worker and requests. `now_ms` is the time in milliseconds since 1970-01-01
    /// UTC.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn status(&self, now_ms: u64) -> Result<LabStatus, ApiError> {
        let results = self.results.display().to_string();
        let Some(folder) = Folder::open(&self.results)? else {
            let remedy = Some(self.remedy());
            return Ok(LabStatus { results_folder: results, remedy, ..LabStatus::default() });
        };
        let worker = find_running_worker(&folder, now_ms)?;
        let remedy = worker.is_none().then(|| self.remedy());
        let requests = request_list::list(&folder, worker.as_ref())?;
        let worker = worker.map(|worker| LabWorker { pid: worker.pid });
        Ok(LabStatus {
            results_folder: results,
            worker,
            remedy,
            plans: read_plans(&folder)?,
            requests,
        })
    }

    /// Returns the latest runs, latest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn runs(&self) -> Result<Vec<LabRun>, ApiError> {
        let Some(folder) = Folder::open(&self.results)? else { return Ok(Vec::new()) };
        let mut listed = self.listed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        listed.list(&folder)
    }

    /// Returns one run with its results.
    ///
    /// # Errors
    /// The run does not exist, or a file cannot be read.
    pub fn run_details(&self, id: &str) -> Result<LabRunDetails, ApiError> {
        runs::details(&self.run_folder(id)?, id)
    }

    /// Returns the report of a run as HTML.
    ///
    /// # Errors
    /// The run does not exist, has no report, or the report cannot be read.
    pub fn html_report(&self, id: &str) -> Result<Vec<u8>, ApiError> {
        runs::html_report(&self.run_folder(id)?, id)
    }

    fn run_folder(&self, id: &str) -> Result<Folder, ApiError> {
        let lacking = || {
            let text = format!("there is no run of this id in {}", self.results.display());
            ApiError::new(ErrorCode::NotFound, text)
                .with_resource(format!("lab/{}", printable_id(id)))
        };
        if !is_valid_id(id) {
            return Err(lacking());
        }
        let folder = Folder::open(&self.results)?.ok_or_else(lacking)?;
        let run = folder.open_subfolder(id)?.ok_or_else(lacking)?;
        if runs::is_run(&run)? { Ok(run) } else { Err(lacking()) }
    }

    fn remedy(&self) -> String {
        if self.results == LabConfig::default().results {
            return NOBODY.to_owned();
        }
        let results = self.results.display();
        format!(
            "{NOBODY} with `--results {results}` (the unit needs \
             `Environment=SUIMON_LAB_RESULTS={results}` in a drop-in)"
        )
    }
}

#[cfg(test)]
mod tests;
