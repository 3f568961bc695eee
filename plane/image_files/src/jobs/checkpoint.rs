//! Checkpoint of a job, from which another process can continue it.

use suimon_ports::{FileName, StoreFiles};

use crate::DiskError;

/// Seconds after a change during which a further change may leave the same modification time.
const SAME_TIME_S: u64 = 2;

/// Progress of an interrupted job, from which it can be resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Number of bytes from the beginning of the disk with a durable copy.
    pub completed_bytes: u64,
    /// Source files of the copy with their state. If one of them was changed since, copying starts
    /// from the beginning.
    pub sources: Vec<SourceFile>,
}

/// State of a source file when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Name of the source file.
    pub name: FileName,
    /// Length of the file in bytes.
    pub len: u64,
    /// Modification time in seconds of Unix time.
    pub modified_unix_s: u64,
}

/// Names of the source files of a job.
pub(super) struct SourceFileNames {
    names: Vec<FileName>,
}

impl SourceFileNames {
    pub(super) const fn new(names: Vec<FileName>) -> Self {
        Self { names }
    }

    fn inspect(&self, files: &dyn StoreFiles) -> Result<Vec<SourceFile>, DiskError> {
        let source_file = |name: &FileName| {
            let status = files.status(name)?;
            let (len, modified_unix_s) = (status.len, status.modified_unix_s);
            Ok(SourceFile { name: name.clone(), len, modified_unix_s })
        };
        self.names.iter().map(source_file).collect()
    }

    /// Returns a checkpoint for `at_bytes` durable bytes. `None` if a later change of the sources
    /// might not be detected, because a source is not a file or was changed within the last
    /// [`SAME_TIME_S`] seconds.
    pub(super) fn checkpoint(
        &self,
        files: &dyn StoreFiles,
        at_bytes: u64,
        now_unix_s: u64,
    ) -> Result<Option<Checkpoint>, DiskError> {
        let sources = self.inspect(files)?;
        let is_old = |source_file: &SourceFile| {
            source_file.modified_unix_s.saturating_add(SAME_TIME_S) <= now_unix_s
        };
        let can_be_told = !sources.is_empty() && sources.iter().all(is_old);
        Ok(can_be_told.then_some(Checkpoint { completed_bytes: at_bytes, sources }))
    }

    /// Returns the position in bytes from which a job continues after a checkpoint; 0 if there is
    /// none or a source was changed since.
    pub(super) fn resume_position(
        &self,
        files: &dyn StoreFiles,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<u64, DiskError> {
        let Some(checkpoint) = checkpoint.filter(|resumable| !resumable.sources.is_empty()) else {
            return Ok(0);
        };
        let is_as_before = self.inspect(files)? == checkpoint.sources;
        Ok(if is_as_before { checkpoint.completed_bytes } else { 0 })
    }
}
