//! Folder for the temporary files of a run, and removal of what killed tests left behind.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};

use crate::output::print_line;
use crate::{metadata, workspace};

/// Parent folder, which `scripts/isolated` uses too. It is on a disk, unlike /tmp on some systems.
const PARENT: &str = "/var/tmp";

/// TMPDIR of a run's commands. Dropping the value removes the folder. If the process is killed,
/// `scripts/isolated --sweep` of the next run removes it, because its lock is free then.
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
        // Users under which tests run programs must be able to search it.
        fs::set_permissions(&new, Permissions::from_mode(0o755)).with_context(failed)?;
        let lock = File::open(&new).with_context(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).with_context(failed)?;
        // The lock is acquired before the folder gets the name under which it is swept.
        fs::rename(&new, &path).with_context(failed)?;
        Ok(Self { path, _lock: lock })
    }

    /// Returns the path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            print_line(format_args!("xtask: cannot remove {}: {error}", self.path.display()));
        }
    }
}

/// Removes processes, namespaces, devices and files of killed tests: those of earlier runs on
/// creation, those of this run on drop.
pub(crate) struct Sweep {
    script: PathBuf,
    /// Not built yet if only one package is tested.
    program: PathBuf,
}

impl Sweep {
    /// Removes the processes, namespaces, devices and files that killed tests of earlier runs have
    /// left.
    ///
    /// # Errors
    /// cargo cannot report the target directory.
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

/// Runs a command that a Ctrl-C of the terminal does not reach.
fn run_undisturbed(command: &mut Command) {
    match command.process_group(0).status() {
        Ok(status) if status.success() => {}
        Ok(status) => {
            print_line(format_args!("xtask: {} failed ({status})", workspace::name(command)));
        }
        Err(error) => {
            print_line(format_args!("xtask: cannot run {}: {error}", workspace::name(command)));
        }
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
