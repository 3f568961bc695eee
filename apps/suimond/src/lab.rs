//! Lab: experiment runs in a folder, carried out by another program.
//!
//! The confined daemon cannot start programs. It writes requests into the folder of results;
//! `suimon lab work`, a separate process, carries them out; the daemon reads the results from the
//! folder. `formats/lab` defines the files.
//!
//! The folder's content is untrusted: names cannot lead out of it, symbolic links are not followed,
//! sizes are bounded, and errors name the file.

mod compared;
mod folder;
mod requests;
mod runs;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::de::DeserializeOwned;
use suimon_contract::{
    ApiError, ErrorCode, LabConfig, LabPlan, LabRun, LabRunDetails, LabStatus, LabWorker,
};
use suimon_lab_run::folder::{PLANS, WORKER, Worker, is_id};

use folder::Folder;
use runs::Listed;

/// Age of the worker's last heartbeat, in ms, above which the worker counts as absent.
const WORKER_AGE_MS_MAX: u64 = 10_000;
/// Largest accepted size of small files in bytes.
const SMALL_BYTES_MAX: u64 = 1 << 20;
const PLANS_MAX: usize = 256;

/// Remedy if no worker is running.
const NOBODY: &str = "no lab worker is running; start it with `systemctl start suimon-lab`, or \
                      run `suimon lab work` as root";

/// Lab with its folder of results.
pub struct Lab {
    results: PathBuf,
    /// Cache of runs, valid while their files are unchanged.
    listed: Mutex<Listed>,
    /// Serializes requests, which are counted and named.
    asking: Mutex<()>,
    /// Serializes comparisons, which require much memory.
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
            return Ok(LabStatus { results, remedy, ..LabStatus::default() });
        };
        let worker = worker(&folder, now_ms)?;
        let remedy = worker.is_none().then(|| self.remedy());
        let requests = requests::list(&folder, worker.as_ref())?;
        let worker = worker.map(|of| LabWorker { pid: of.pid });
        Ok(LabStatus { results, worker, remedy, plans: plans(&folder)?, requests })
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
    pub fn run(&self, id: &str) -> Result<LabRunDetails, ApiError> {
        runs::details(&self.run_folder(id)?, id)
    }

    /// Returns the report of a run as HTML.
    ///
    /// # Errors
    /// The run does not exist, has no report, or the report cannot be read.
    pub fn report(&self, id: &str) -> Result<Vec<u8>, ApiError> {
        runs::report(&self.run_folder(id)?, id)
    }

    fn run_folder(&self, id: &str) -> Result<Folder, ApiError> {
        let lacking = || {
            let text = format!("there is no run of this id in {}", self.results.display());
            ApiError::new(ErrorCode::NotFound, text).about(format!("lab/{}", shown_id(id)))
        };
        if !is_id(id) {
            return Err(lacking());
        }
        let folder = Folder::open(&self.results)?.ok_or_else(lacking)?;
        let run = folder.folder(id)?.ok_or_else(lacking)?;
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

/// Returns the worker if one is running.
fn worker(folder: &Folder, now_ms: u64) -> Result<Option<Worker>, ApiError> {
    let Some(worker) = read::<Worker>(folder, WORKER, SMALL_BYTES_MAX)? else { return Ok(None) };
    Ok(Some(worker).filter(|of| now_ms.abs_diff(of.at_ms) <= WORKER_AGE_MS_MAX))
}

fn plans(folder: &Folder) -> Result<Vec<LabPlan>, ApiError> {
    let mut plans: Vec<LabPlan> = read(folder, PLANS, SMALL_BYTES_MAX)?.unwrap_or_default();
    plans.truncate(PLANS_MAX);
    plans.retain(|plan| is_id(&plan.id));
    Ok(plans)
}

/// Reads a JSON file; `None` if it does not exist.
fn read<T: DeserializeOwned>(
    folder: &Folder,
    name: &str,
    bytes_max: u64,
) -> Result<Option<T>, ApiError> {
    let Some(bytes) = folder.file(name, bytes_max)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        let text = format!("is damaged, or was written by another version of suimon-lab: {error}");
        unread(&folder.path(name), text)
    })
}

/// Returns the error for an invalid or unreadable file of the folder.
fn unread(path: &Path, text: impl Into<String>) -> ApiError {
    let mut error = ApiError::new(ErrorCode::HostError, text).about("lab");
    error.file = Some(path.display().to_string());
    error
}

/// Returns the first characters of an id given by a client, without control characters.
fn shown_id(id: &str) -> String {
    let plain = |of: char| if of.is_ascii_graphic() && of != '/' { of } else { '?' };
    id.chars().take(64).map(plain).collect()
}

#[cfg(test)]
mod tests;
