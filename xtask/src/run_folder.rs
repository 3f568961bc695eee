//! Folder for the temporary files of a run, and removal of what killed tests have left.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};

use crate::session::say;
use crate::{metadata, workspace};

/// Where `scripts/isolated` makes its folders too. On a disk, unlike /tmp of some systems.
const PARENT: &str = "/var/tmp";

/// Folder that the commands of a run have as TMPDIR. It is removed with this value; if the process
/// is killed, `scripts/isolated --sweep` of the next run removes it, because its lock is free then.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    _lock: File,
}

impl RunFolder {
    /// Creates the folder.
    ///
    /// # Errors
    /// /var/tmp cannot be written to.
    pub(crate) fn create() -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{}-{}", process::id(), now.as_nanos());
        let new = Path::new(PARENT).join(format!("smn-{name}"));
        let path = Path::new(PARENT).join(format!("smt-{name}"));
        let failed = || format!("cannot create {}", new.display());
        fs::create_dir(&new).with_context(failed)?;
        // Users that tests run programs as pass through it.
        fs::set_permissions(&new, Permissions::from_mode(0o755)).with_context(failed)?;
        let lock = File::open(&new).with_context(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).with_context(failed)?;
        // Locked before it has the name by which it is swept.
        fs::rename(&new, &path).with_context(failed)?;
        Ok(Self { path, _lock: lock })
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            say(format_args!("xtask: cannot remove {}: {error}", self.path.display()));
        }
    }
}

/// Removes processes, namespaces, devices and files of tests that were killed: when it is created
/// those of earlier runs, when it is dropped those of this one.
pub(crate) struct Sweep {
    script: PathBuf,
    /// Not built yet when only one package is tested.
    program: PathBuf,
}

impl Sweep {
    /// Removes what earlier runs left.
    ///
    /// # Errors
    /// cargo cannot tell the target directory.
    pub(crate) fn begin(root: &Path) -> Result<Self> {
        let program = metadata::read(root)?.target_directory.join("debug/sweep");
        let sweep = Self { script: root.join("scripts/isolated"), program };
        sweep.run();
        Ok(sweep)
    }

    fn run(&self) {
        run_undisturbed(Command::new(&self.script).arg("--sweep"));
        if self.program.exists() {
            run_undisturbed(&mut Command::new(&self.program));
        }
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        self.run();
    }
}

/// Runs a command that no Ctrl-C of the terminal reaches.
fn run_undisturbed(command: &mut Command) {
    match command.process_group(0).status() {
        Ok(status) if status.success() => {}
        Ok(status) => say(format_args!("xtask: {} failed ({status})", workspace::name(command))),
        Err(error) => say(format_args!("xtask: cannot run {}: {error}", workspace::name(command))),
    }
}

#[cfg(test)]
mod tests {
    use super::RunFolder;

    #[test]
    fn a_folder_is_locked_while_it_is_used_and_removed_afterwards() {
        let folder = RunFolder::create().unwrap();
        let path = folder.path().to_owned();
        std::fs::write(path.join("file"), "").unwrap();
        let other = std::fs::File::open(&path).unwrap();
        let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        assert!(rustix::fs::flock(&other, lock).is_err());
        drop(folder);
        assert!(!path.exists());
    }
}
