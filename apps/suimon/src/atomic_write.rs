//! Atomic replacement of a file by a command's output.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// Writes a file completely, or leaves it as it was. A symbolic link is followed. An existing file
/// keeps its permissions, and its owner if the caller may set it. A pipe or device is written
/// directly.
///
/// # Errors
/// The file or its directory cannot be written.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (target, former) = match fs::canonicalize(path) {
        Ok(target) => {
            let former = fs::metadata(&target)?;
            (target, Some(former))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => (path.to_owned(), None),
        Err(error) => return Err(error),
    };
    if former.as_ref().is_some_and(|former| !former.is_file()) {
        return OpenOptions::new().write(true).open(&target)?.write_all(bytes);
    }
    let new = new_path(&target)?;
    let written = write_new(&new, former.as_ref(), bytes).and_then(|()| fs::rename(&new, &target));
    if written.is_err() {
        let _ = fs::remove_file(&new);
        return written;
    }
    File::open(folder_of(&target))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the path of a new file in the same directory.
fn new_path(path: &Path) -> io::Result<PathBuf> {
    let no_name = || io::Error::new(ErrorKind::InvalidInput, "the path does not name a file");
    let name = path.file_name().ok_or_else(no_name)?.to_string_lossy();
    Ok(folder_of(path).join(format!(".{name}.{}.new", std::process::id())))
}

/// Creates a file with these contents, durably. Contents are not readable by users who may not read
/// the former file.
fn write_new(path: &Path, former: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    let mode = if former.is_some() { 0o600 } else { 0o666 };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    if let Some(former) = former {
        // Only root may set another owner.
        let _ = fchown(&file, Some(former.uid()), Some(former.gid()));
        file.set_permissions(former.permissions())?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_links_stay() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["host.toml", "link"].map(|name| folder.path().join(name));
        write_atomically(&file, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        write_atomically(&link, b"newer").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"newer");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        // No other file remains.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        write_atomically(Path::new("/dev/null"), b"x").unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_written_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("host.toml");
        fs::write(&file, "former").unwrap();
        // Makes the creation of the new file fail, also for root.
        fs::create_dir(new_path(&file).unwrap()).unwrap();
        assert!(write_atomically(&file, b"new").is_err());
        assert_eq!(fs::read(&file).unwrap(), b"former");
        assert!(write_atomically(folder.path(), b"new").is_err(), "a directory");
        assert!(write_atomically(&folder.path().join("none/host.toml"), b"new").is_err());
    }
}
