//! The lab: runs of experiments in a folder, which another program makes.
//!
//! The daemon may start nothing. What it is asked for it writes into the folder of results; `suimon
//! lab work`, beside it, does that; and what comes out is read from there. `formats/lab` says what is
//! where.
//!
//! Whatever is in that folder was written by somebody else: names lead out of it nowhere, links are not
//! followed, sizes are bounded, and an error names the file.

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

/// Without news of a worker for this long, there is none.
const WORKER_AGE_MS_MAX: u64 = 10_000;
/// What is read of small files, at most.
const SMALL_BYTES_MAX: u64 = 1 << 20;
const PLANS_MAX: usize = 256;

/// What to do when nobody runs experiments.
const NOBODY: &str = "nobody runs experiments here: start `systemctl start suimon-lab`, or run \
                      `suimon lab work` as root";

/// The folder of results.
pub struct Lab {
    results: PathBuf,
    /// What was read of runs that have not changed since.
    listed: Mutex<Listed>,
    /// Requests are counted and named by one at a time.
    asking: Mutex<()>,
    /// Comparing takes memory: one at a time.
    comparing: Mutex<()>,
}

impl Lab {
    /// The lab of `[lab]`, or the usual one.
    pub fn new(config: Option<&LabConfig>) -> Self {
        let results = config.cloned().unwrap_or_default().results;
        Self {
            results,
            listed: Mutex::default(),
            asking: Mutex::default(),
            comparing: Mutex::default(),
        }
    }

    /// Plans, who runs them, and what was asked for; `now_ms` is since 1970.
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

    /// All runs, the latest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn runs(&self) -> Result<Vec<LabRun>, ApiError> {
        let Some(folder) = Folder::open(&self.results)? else { return Ok(Vec::new()) };
        let mut listed = self.listed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        listed.list(&folder)
    }

    /// One run, with what came out.
    ///
    /// # Errors
    /// There is no such run, or a file cannot be read.
    pub fn run(&self, id: &str) -> Result<LabRunDetails, ApiError> {
        runs::details(&self.run_folder(id)?, id)
    }

    /// The report of a run, as a page.
    ///
    /// # Errors
    /// There is no such run, it has none, or it cannot be read.
    pub fn report(&self, id: &str) -> Result<Vec<u8>, ApiError> {
        runs::report(&self.run_folder(id)?, id)
    }

    fn run_folder(&self, id: &str) -> Result<Folder, ApiError> {
        let lacking = || {
            let text = format!("there is no such run in {}", self.results.display());
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
            "{NOBODY} with `--results {results}` (the unit needs `Environment=SUIMON_LAB_RESULTS={results}` \
             in a drop-in)"
        )
    }
}

/// Who runs experiments, if somebody does.
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

/// What a JSON file says; none if there is no such file.
fn read<T: DeserializeOwned>(
    folder: &Folder,
    name: &str,
    bytes_max: u64,
) -> Result<Option<T>, ApiError> {
    let Some(bytes) = folder.file(name, bytes_max)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        let text = format!("is damaged, or of another version of suimon-lab: {error}");
        unread(&folder.path(name), text)
    })
}

/// A file of the folder that is not as it should be.
fn unread(path: &Path, text: impl Into<String>) -> ApiError {
    let mut error = ApiError::new(ErrorCode::HostError, text).about("lab");
    error.file = Some(path.display().to_string());
    error
}

/// The head of what somebody wrote in place of an id.
fn shown_id(id: &str) -> String {
    let plain = |of: char| if of.is_ascii_graphic() && of != '/' { of } else { '?' };
    id.chars().take(64).map(plain).collect()
}

#[cfg(test)]
mod tests;
