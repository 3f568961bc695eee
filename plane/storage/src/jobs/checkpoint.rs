//! How far a job was, so that it goes on from there when whoever drove it has ended.

use suimon_ports::{FileName, StoreFiles};

use crate::images::DiskError;

/// Seconds after its last change in which a file may change again and still have the same time.
const SAME_TIME_S: u64 = 2;

/// What a job that is begun again need not do again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Bytes of the disk, from its beginning, whose copies are durable.
    pub at_bytes: u64,
    /// What they were copied from: a disk that was changed since is copied anew.
    pub sources: Vec<SourceFile>,
}

/// A file that was read, as it was then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Which one.
    pub name: FileName,
    /// Its length in bytes.
    pub len: u64,
    /// When it was last changed, in seconds of Unix time.
    pub modified_unix_s: u64,
}

/// Files that a job reads.
pub(super) struct Sources {
    names: Vec<FileName>,
}

impl Sources {
    pub(super) const fn new(names: Vec<FileName>) -> Self {
        Self { names }
    }

    fn look(&self, files: &dyn StoreFiles) -> Result<Vec<SourceFile>, DiskError> {
        let look = |name: &FileName| {
            let status = files.status(name)?;
            let (len, modified_unix_s) = (status.len, status.modified_unix_s);
            Ok(SourceFile { name: name.clone(), len, modified_unix_s })
        };
        self.names.iter().map(look).collect()
    }

    /// What to go on from, of what is durable up to `at_bytes`. `None`: a change of what was read would
    /// not be seen, because it is no file, or was changed a moment ago.
    pub(super) fn checkpoint(
        &self,
        files: &dyn StoreFiles,
        at_bytes: u64,
        now_unix_s: u64,
    ) -> Result<Option<Checkpoint>, DiskError> {
        let sources = self.look(files)?;
        let is_old = |of: &SourceFile| of.modified_unix_s.saturating_add(SAME_TIME_S) <= now_unix_s;
        let can_be_told = !sources.is_empty() && sources.iter().all(is_old);
        Ok(can_be_told.then_some(Checkpoint { at_bytes, sources }))
    }

    /// From where on a job goes on that was at a checkpoint; 0 if what it has read was changed.
    pub(super) fn resumed_at(
        &self,
        files: &dyn StoreFiles,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<u64, DiskError> {
        let Some(checkpoint) = checkpoint.filter(|of| !of.sources.is_empty()) else {
            return Ok(0);
        };
        let is_as_before = self.look(files)? == checkpoint.sources;
        Ok(if is_as_before { checkpoint.at_bytes } else { 0 })
    }
}
