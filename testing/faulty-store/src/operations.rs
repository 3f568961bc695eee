//! Operations on the folder, with their faults.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuser::{Errno, FileAttr, FileHandle, FileType, INodeNo, OpenAccMode, OpenFlags};
use rustix::fs::{CWD, FallocateFlags, OFlags, SeekFrom, StatVfs};
use suimon_test_programs::StoreOperation;

use crate::changes::Changes;
use crate::faults::{Admission, Faults, short_len};
use crate::nodes::Nodes;
use crate::undo::Unflushed;

/// Folder with injected faults.
#[derive(Debug)]
pub(crate) struct PassThrough {
    faults: Arc<Faults>,
    root: PathBuf,
    state: Mutex<State>,
    unflushed: Unflushed,
}

#[derive(Debug)]
struct State {
    nodes: Nodes,
    handles: BTreeMap<u64, Arc<File>>,
    last_handle: u64,
}

impl State {
    /// Stores a newly opened file and returns its handle.
    fn add_handle(&mut self, node: INodeNo, file: File) -> FileHandle {
        let file = Arc::new(file);
        self.nodes.handle_opened(node, &file);
        self.last_handle += 1;
        self.handles.insert(self.last_handle, file);
        FileHandle(self.last_handle)
    }
}

impl PassThrough {
    pub(crate) fn new(root: PathBuf, faults: Arc<Faults>) -> Self {
        let nodes = Nodes::new(root.clone());
        let state = Mutex::new(State { nodes, handles: BTreeMap::new(), last_handle: 0 });
        Self { faults, root, state, unflushed: Unflushed::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the path of a node and its name in rules.
    fn found(&self, node: INodeNo) -> Result<(PathBuf, String), Errno> {
        let state = self.state();
        let path = state.nodes.path(node)?;
        let name = state.nodes.name(&path);
        Ok((path, name))
    }

    /// Returns the path of a name in a folder, and its name in rules.
    fn below(&self, folder: INodeNo, name: &OsStr) -> Result<(PathBuf, String), Errno> {
        let state = self.state();
        let path = state.nodes.path(folder)?.join(name);
        let name = state.nodes.name(&path);
        Ok((path, name))
    }

    fn handle(&self, handle: FileHandle) -> Result<Arc<File>, Errno> {
        self.state().handles.get(&handle.0).cloned().ok_or(Errno::EBADF)
    }

    /// Admits an operation that succeeds or fails as a whole.
    fn admit(&self, operation: StoreOperation, name: &str) -> Result<(), Errno> {
        match self.faults.admit(operation, name) {
            Admission::Fail(errno) => Err(errno),
            Admission::Lose => Err(Errno::EIO),
            Admission::Proceed | Admission::Short => Ok(()),
        }
    }

    /// Admits a transfer of `len` bytes and returns how many bytes are transferred.
    fn admit_transfer(
        &self,
        operation: StoreOperation,
        node: INodeNo,
        len: usize,
    ) -> Result<usize, Errno> {
        let (_, name) = self.found(node)?;
        match self.faults.admit(operation, &name) {
            Admission::Fail(errno) => Err(errno),
            Admission::Lose => Err(Errno::EIO),
            Admission::Short => Ok(short_len(len)),
            Admission::Proceed => Ok(len),
        }
    }

    pub(crate) fn look_up_name(&self, folder: INodeNo, name: &OsStr) -> Result<FileAttr, Errno> {
        let (path, name) = self.below(folder, name)?;
        self.admit(StoreOperation::Attributes, &name)?;
        Ok(self.state().nodes.look_up(&path)?)
    }

    pub(crate) fn open_node(&self, node: INodeNo, flags: OpenFlags) -> Result<FileHandle, Errno> {
        let (path, name) = self.found(node)?;
        self.admit(StoreOperation::Open, &name)?;
        let writes = flags.acc_mode() != OpenAccMode::O_RDONLY;
        let file = OpenOptions::new().read(true).write(writes).open(path)?;
        Ok(self.state().add_handle(node, file))
    }

    pub(crate) fn create_file(
        &self,
        folder: INodeNo,
        name: &OsStr,
        mode: u32,
        flags: i32,
    ) -> Result<(FileAttr, FileHandle), Errno> {
        let (path, name) = self.below(folder, name)?;
        self.admit(StoreOperation::Create, &name)?;
        let is_new = OFlags::from_bits_retain(flags as u32).contains(OFlags::EXCL);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).create_new(is_new).mode(mode);
        let file = options.open(&path)?;
        let mut state = self.state();
        let attributes = state.nodes.look_up(&path)?;
        let handle = state.add_handle(attributes.ino, file);
        Ok((attributes, handle))
    }

    fn set_length(&self, node: INodeNo, len: u64) -> Result<(), Errno> {
        let (path, name) = self.found(node)?;
        self.admit(StoreOperation::SetLength, &name)?;
        let open = self.state().nodes.open_file(node);
        match open.map(|file| file.set_len(len)) {
            Some(Ok(())) => Ok(()),
            // No file is open, or not for writing.
            _ => Ok(OpenOptions::new().write(true).open(path)?.set_len(len)?),
        }
    }

    pub(crate) fn write_bytes(
        &self,
        node: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<u32, Errno> {
        let len = self.admit_transfer(StoreOperation::Write, node, bytes.len())?;
        let file = self.handle(handle)?;
        if self.faults.may_lose(&self.found(node)?.1) {
            self.unflushed.handle_write(node.0, &file, offset, len)?;
        }
        file.write_all_at(&bytes[..len], offset)?;
        Ok(len as u32)
    }

    pub(crate) fn read_bytes(
        &self,
        node: INodeNo,
        handle: FileHandle,
        offset: u64,
        len: usize,
    ) -> Result<Vec<u8>, Errno> {
        let len = self.admit_transfer(StoreOperation::Read, node, len)?;
        let file = self.handle(handle)?;
        let mut bytes = vec![0; len];
        let mut read = 0;
        while read < len {
            match file.read_at(&mut bytes[read..], offset + read as u64)? {
                0 => break,
                more => read += more,
            }
        }
        bytes.truncate(read);
        Ok(bytes)
    }

    pub(crate) fn flush_file(&self, node: INodeNo, handle: FileHandle) -> Result<(), Errno> {
        let (_, name) = self.found(node)?;
        match self.faults.admit(StoreOperation::Flush, &name) {
            Admission::Fail(errno) => Err(errno),
            Admission::Lose => {
                self.unflushed.undo(node.0, &*self.handle(handle)?)?;
                Err(Errno::EIO)
            }
            Admission::Proceed | Admission::Short => {
                self.unflushed.handle_flushed(node.0);
                Ok(())
            }
        }
    }

    pub(crate) fn allocate(
        &self,
        node: INodeNo,
        handle: FileHandle,
        (offset, len): (u64, u64),
        mode: i32,
    ) -> Result<(), Errno> {
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        let zeroing = FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE;
        let is_punch = mode.intersects(zeroing);
        let operation = if is_punch { StoreOperation::Punch } else { StoreOperation::Allocate };
        self.admit(operation, &self.found(node)?.1)?;
        let file = self.handle(handle)?;
        Ok(rustix::fs::fallocate(&*file, mode, offset, len).map_err(io::Error::from)?)
    }

    pub(crate) fn move_name(
        &self,
        from: (INodeNo, &OsStr),
        to: (INodeNo, &OsStr),
        flags: u32,
    ) -> io::Result<()> {
        let (from, name) = self.below(from.0, from.1).map_err(error_of)?;
        let (to, _) = self.below(to.0, to.1).map_err(error_of)?;
        self.admit(StoreOperation::Rename, &name).map_err(error_of)?;
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags);
        let mut state = self.state();
        let replaces = flags.is_empty();
        if replaces {
            state.nodes.forget_inode(&to);
        }
        rustix::fs::renameat_with(CWD, &from, CWD, &to, flags)?;
        state.nodes.look_up(&to).map(drop)
    }

    pub(crate) fn remove(
        &self,
        folder: INodeNo,
        name: &OsStr,
        is_folder: bool,
    ) -> Result<(), Errno> {
        let (path, name) = self.below(folder, name)?;
        self.admit(StoreOperation::Remove, &name)?;
        let mut state = self.state();
        state.nodes.forget_inode(&path);
        let removed = if is_folder { fs::remove_dir(path) } else { fs::remove_file(path) };
        Ok(removed?)
    }

    pub(crate) fn make_folder(
        &self,
        folder: INodeNo,
        name: &OsStr,
        mode: u32,
    ) -> Result<FileAttr, Errno> {
        let (path, _) = self.below(folder, name)?;
        fs::create_dir(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        Ok(self.state().nodes.look_up(&path)?)
    }

    pub(crate) fn names(&self, node: INodeNo) -> Result<Vec<(FileType, OsString)>, Errno> {
        let (path, name) = self.found(node)?;
        self.admit(StoreOperation::List, &name)?;
        let mut names = vec![(FileType::Directory, ".".into()), (FileType::Directory, "..".into())];
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let kind = FileType::from_std(entry.file_type()?).unwrap_or(FileType::RegularFile);
            names.push((kind, entry.file_name()));
        }
        names[2..].sort_by(|one, other| one.1.cmp(&other.1));
        Ok(names)
    }

    pub(crate) fn attributes(&self, node: INodeNo) -> Result<FileAttr, Errno> {
        let (_, name) = self.found(node)?;
        self.admit(StoreOperation::Attributes, &name)?;
        Ok(self.state().nodes.attributes(node)?)
    }

    /// Changes the length, or other attributes. `ftruncate` also sets the modification time.
    pub(crate) fn change(
        &self,
        node: INodeNo,
        len: Option<u64>,
        changes: &Changes,
    ) -> Result<FileAttr, Errno> {
        if let Some(len) = len {
            self.set_length(node, len)?;
        } else {
            let (path, name) = self.found(node)?;
            self.admit(StoreOperation::SetAttributes, &name)?;
            changes.make(&path)?;
        }
        Ok(self.state().nodes.attributes(node)?)
    }

    pub(crate) fn close(&self, node: INodeNo, handle: FileHandle) {
        let mut state = self.state();
        if let Some(file) = state.handles.remove(&handle.0) {
            state.nodes.handle_closed(node, &file);
        }
    }

    pub(crate) fn flush_folder(&self, node: INodeNo) -> Result<(), Errno> {
        self.admit(StoreOperation::FlushFolder, &self.found(node)?.1)
    }

    pub(crate) fn seek(
        &self,
        node: INodeNo,
        handle: FileHandle,
        place: SeekFrom,
    ) -> Result<u64, Errno> {
        self.admit(StoreOperation::Seek, &self.found(node)?.1)?;
        let file = self.handle(handle)?;
        Ok(rustix::fs::seek(&*file, place).map_err(io::Error::from)?)
    }

    pub(crate) fn space(&self) -> Result<StatVfs, Errno> {
        self.admit(StoreOperation::Space, "")?;
        Ok(rustix::fs::statvfs(&self.root).map_err(io::Error::from)?)
    }
}

fn error_of(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.code())
}
