//! FUSE requests and their replies.

use std::ffi::OsStr;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};
use rustix::fs::SeekFrom;

use crate::changes::Changes;
use crate::faults::NOT_CACHED;
use crate::operations::PassThrough;

/// Files are never cached by the kernel, and several writes to a file may be in flight.
const OPENED: FopenFlags =
    FopenFlags::FOPEN_DIRECT_IO.union(FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);

fn reply_empty(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

fn reply_entry(reply: ReplyEntry, result: Result<FileAttr, Errno>) {
    match result {
        Ok(attributes) => reply.entry(&NOT_CACHED, &attributes, Generation(0)),
        Err(errno) => reply.error(errno),
    }
}

fn reply_attr(reply: ReplyAttr, result: Result<FileAttr, Errno>) {
    match result {
        Ok(attributes) => reply.attr(&NOT_CACHED, &attributes),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for PassThrough {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        reply_entry(reply, self.look_up_name(parent, name));
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply_attr(reply, self.attributes(node));
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changes = Changes { mode, owner: (uid, gid), accessed, modified };
        reply_attr(reply, self.change(node, size, &changes));
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        reply_entry(reply, self.make_folder(parent, name, mode & !umask));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(reply, self.remove(parent, name, false));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(reply, self.remove(parent, name, true));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let moved = self.move_name((parent, name), (new_parent, new_name), flags.bits());
        reply_empty(reply, moved.map_err(Errno::from));
    }

    fn open(&self, _: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.open_node(node, flags) {
            Ok(handle) => reply.opened(handle, OPENED),
            Err(errno) => reply.error(errno),
        }
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        match self.create_file(parent, name, mode & !umask, flags) {
            Ok((attributes, handle)) => {
                reply.created(&NOT_CACHED, &attributes, Generation(0), handle, OPENED);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.read_bytes(node, handle, offset, size as usize) {
            Ok(bytes) => reply.data(&bytes),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        node: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.write_bytes(node, handle, offset, bytes) {
            Ok(len) => reply.written(len),
            Err(errno) => reply.error(errno),
        }
    }

    /// Called when a descriptor is closed.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        node: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.close(node, handle);
        reply.ok();
    }

    fn fsync(&self, _: &Request, node: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        reply_empty(reply, self.flush_file(node, handle));
    }

    fn fsyncdir(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply_empty(reply, self.flush_folder(node));
    }

    fn readdir(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let names = match self.names(node) {
            Ok(names) => names,
            Err(errno) => return reply.error(errno),
        };
        for (at, (kind, name)) in names.into_iter().enumerate().skip(offset as usize) {
            // The kernel ignores the node numbers in a directory listing.
            if reply.add(INodeNo(u64::MAX), at as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.space() {
            Ok(of) => reply.statfs(
                of.f_blocks,
                of.f_bfree,
                of.f_bavail,
                of.f_files,
                of.f_ffree,
                of.f_bsize as u32,
                of.f_namemax as u32,
                of.f_frsize as u32,
            ),
            Err(errno) => reply.error(errno),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        node: INodeNo,
        handle: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        reply_empty(reply, self.allocate(node, handle, (offset, len), mode));
    }

    fn lseek(
        &self,
        _: &Request,
        node: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let offset = u64::try_from(offset).unwrap_or(0);
        // The kernel submits only `SEEK_DATA` and `SEEK_HOLE` (lseek(2)).
        let place = if whence == 3 { SeekFrom::Data(offset) } else { SeekFrom::Hole(offset) };
        match self.seek(node, handle, place) {
            Ok(found) => reply.offset(i64::try_from(found).unwrap_or(i64::MAX)),
            Err(errno) => reply.error(errno),
        }
    }
}
