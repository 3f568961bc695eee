//! Files of the folder by their node numbers.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo};

/// Node numbers and paths of files that were looked up. A number is not used again, unlike the
/// inode number of the folder's file system.
#[derive(Debug)]
pub(crate) struct Nodes {
    root: PathBuf,
    paths: BTreeMap<u64, PathBuf>,
    /// Node numbers by inode number.
    numbers: BTreeMap<u64, u64>,
    /// Open files by node number. A removed file is found here only.
    open: BTreeMap<u64, Vec<Arc<File>>>,
    last: u64,
}

impl Nodes {
    pub(crate) fn new(root: PathBuf) -> Self {
        let root_number = INodeNo::ROOT.0;
        let paths = BTreeMap::from([(root_number, root.clone())]);
        Self { root, paths, numbers: BTreeMap::new(), open: BTreeMap::new(), last: root_number }
    }

    /// Returns the path of a node in the folder.
    ///
    /// # Errors
    /// The node does not exist.
    pub(crate) fn path(&self, node: INodeNo) -> io::Result<PathBuf> {
        self.paths.get(&node.0).cloned().ok_or(io::ErrorKind::NotFound.into())
    }

    /// Returns a path relative to the folder, as rules name it.
    pub(crate) fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Returns the attributes of the file at a path, with its node number.
    pub(crate) fn look_up(&mut self, path: &Path) -> io::Result<FileAttr> {
        let found = fs::symlink_metadata(path)?;
        let number = match self.numbers.get(&found.ino()) {
            Some(number) => *number,
            None => {
                self.last += 1;
                self.numbers.insert(found.ino(), self.last);
                self.last
            }
        };
        self.paths.insert(number, path.to_owned());
        Ok(attributes(number, &found))
    }

    /// Returns the attributes of a node.
    pub(crate) fn attributes(&self, node: INodeNo) -> io::Result<FileAttr> {
        let found = match self.open.get(&node.0).and_then(|files| files.first()) {
            Some(file) => file.metadata()?,
            None => fs::symlink_metadata(self.path(node)?)?,
        };
        Ok(attributes(node.0, &found))
    }

    /// Returns an open file of a node.
    pub(crate) fn open_file(&self, node: INodeNo) -> Option<Arc<File>> {
        self.open.get(&node.0)?.last().cloned()
    }

    pub(crate) fn handle_opened(&mut self, node: INodeNo, file: &Arc<File>) {
        self.open.entry(node.0).or_default().push(Arc::clone(file));
    }

    pub(crate) fn handle_closed(&mut self, node: INodeNo, file: &Arc<File>) {
        if let Some(files) = self.open.get_mut(&node.0) {
            files.retain(|open| !Arc::ptr_eq(open, file));
            if files.is_empty() {
                self.open.remove(&node.0);
            }
        }
    }

    /// Forgets the inode number of a file before it is removed or replaced: the file system of the
    /// folder may use it again.
    pub(crate) fn forget_inode(&mut self, path: &Path) {
        if let Ok(found) = fs::symlink_metadata(path) {
            if found.is_dir() || found.nlink() == 1 {
                self.numbers.remove(&found.ino());
            }
        }
    }
}

fn attributes(number: u64, found: &Metadata) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: found.size(),
        blocks: found.blocks(),
        atime: time(found.atime(), found.atime_nsec()),
        mtime: time(found.mtime(), found.mtime_nsec()),
        ctime: time(found.ctime(), found.ctime_nsec()),
        crtime: UNIX_EPOCH,
        kind: FileType::from_std(found.file_type()).unwrap_or(FileType::RegularFile),
        perm: (found.mode() & 0o7777) as u16,
        nlink: found.nlink() as u32,
        uid: found.uid(),
        gid: found.gid(),
        rdev: found.rdev() as u32,
        blksize: 4096,
        flags: 0,
    }
}

fn time(unix_s: i64, ns: i64) -> SystemTime {
    // Files of tests are not older than 1970.
    UNIX_EPOCH + Duration::new(u64::try_from(unix_s).unwrap_or(0), u32::try_from(ns).unwrap_or(0))
}
