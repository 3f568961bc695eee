//! Persistent records of jobs, by which the next daemon resumes jobs that a daemon did not
//! complete.
//!
//! A record contains the job and its last checkpoint. It is deleted before the operation ends, so
//! that a job is never resumed after its end was reported.

mod control;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use suimon_contract::{Name, StoreFile};
use suimon_image_files::jobs::{Checkpoint, SourceFile};
use suimon_ports::{FileName, StateStore, StateStoreError};

use super::required::{RequiredDisk, file_name};
use super::work::DiskFileJob;
use crate::disks::records::DISK_JOBS_TABLE;
use crate::state::{decode, scan_all};

/// Persistent record of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobRecord {
    work: DiskFileJob,
    /// Store and file of the disk when the job began.
    store: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<StoreFile>,
    /// Checkpoint: bytes that need not be processed again.
    #[serde(default)]
    at_bytes: u64,
    #[serde(default)]
    sources: Vec<StoredSource>,
    /// Number of times the job was resumed since its last progress.
    #[serde(default)]
    #[serde(rename = "tries")]
    attempts: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredSource {
    file: StoreFile,
    len: u64,
    modified_unix_s: u64,
}

pub(crate) type UnfinishedJobs = BTreeMap<Name, JobRecord>;

impl JobRecord {
    /// Creates the record of a new job.
    pub(super) fn new(work: DiskFileJob, required: &RequiredDisk) -> Self {
        Self {
            work,
            store: required.store.path.clone(),
            file: required.config.effective_file(),
            at_bytes: 0,
            sources: Vec::new(),
            attempts: 0,
        }
    }

    pub(super) const fn job(&self) -> &DiskFileJob {
        &self.work
    }

    /// Returns true if the disk still has the file that the job began with.
    fn is_about(&self, required: &RequiredDisk) -> bool {
        self.store == required.store.path && self.file == required.config.effective_file()
    }

    /// Returns the name of the unfinished image that the job writes; `None` if the job creates
    /// none.
    fn draft(&self) -> Option<FileName> {
        let target = match &self.work {
            DiskFileJob::Compact => self.file.as_ref(),
            DiskFileJob::Convert(request) => Some(&request.file),
            DiskFileJob::Check
            | DiskFileJob::Snapshot(_)
            | DiskFileJob::Merge
            | DiskFileJob::Reopen => None,
        };
        suimon_image_files::incomplete_name(&file_name(target?)?).ok()
    }

    /// Returns the checkpoint to resume from.
    pub(super) fn checkpoint(&self) -> Checkpoint {
        let source = |stored: &StoredSource| {
            let (len, modified_unix_s) = (stored.len, stored.modified_unix_s);
            Some(SourceFile { name: file_name(&stored.file)?, len, modified_unix_s })
        };
        // If a source has an invalid name, the job starts from the beginning.
        let sources: Option<Vec<SourceFile>> = self.sources.iter().map(source).collect();
        Checkpoint { completed_bytes: self.at_bytes, sources: sources.unwrap_or_default() }
    }

    /// Records a checkpoint. If it is beyond the previous one, resets the number of attempts.
    fn go_to(&mut self, checkpoint: &Checkpoint) {
        let source = |source: &SourceFile| {
            let (len, modified_unix_s) = (source.len, source.modified_unix_s);
            Some(StoredSource { file: source.name.as_str().parse().ok()?, len, modified_unix_s })
        };
        let Some(sources) = checkpoint.sources.iter().map(source).collect() else { return };
        if checkpoint.completed_bytes > self.at_bytes {
            self.attempts = 0;
        }
        (self.at_bytes, self.sources) = (checkpoint.completed_bytes, sources);
    }
}

/// Loads the records of jobs that former daemons did not complete.
pub(crate) fn load_unfinished(store: &dyn StateStore) -> Result<UnfinishedJobs, StateStoreError> {
    let mut jobs = BTreeMap::new();
    scan_all(store, DISK_JOBS_TABLE, &mut |key, value| {
        if let Ok(disk) = key.parse::<Name>() {
            jobs.insert(disk, decode(DISK_JOBS_TABLE, key, value)?);
        }
        Ok(())
    })?;
    Ok(jobs)
}
