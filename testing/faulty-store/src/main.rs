//! FUSE file system that passes operations through to a folder and injects faults into them, for
//! tests of a store that fails, delays or truncates operations.
//!
//! `faulty-store FOLDER MOUNT_POINT SOCKET` mounts the folder and serves it until it is unmounted.
//! Rules are set over a Unix socket, which listens once the file system is mounted.
//!
//! - Files are opened with `FOPEN_DIRECT_IO`: each read and write reaches this program, also those
//!   through the page cache. Attributes and names are not cached.
//! - The daemon uses the page cache on FUSE, because io_uring mixes up the rest of a short direct
//!   write (`HostFile::direct` in `sys/uring`).
//! - A flush does not flush the folder's file system: data survives the end of every process, not
//!   that of the host. The effect `lose` simulates the loss of unflushed writes.
//! - Locks stay in the kernel. The program mounts without `fusermount3`, which needs root.
//! - The kernel remembers ENOSYS as the result of an operation and does not submit the operation
//!   again; the same holds for EOPNOTSUPP as the result of `fallocate`.
//! - A process with an operation in flight cannot be killed until the operation has completed.
#![forbid(unsafe_code)]

mod changes;
mod control;
mod faults;
mod file_system;
mod nodes;
mod operations;
mod undo;

use std::env;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result, bail};
use fuser::{Config, MountOption, Session};

use crate::faults::Faults;
use crate::operations::PassThrough;

/// Threads that execute operations. A delayed or held operation occupies one.
const THREADS: usize = 16;

fn main() -> ExitCode {
    suimon_test_programs::end_program("faulty-store", run())
}

fn run() -> Result<()> {
    let words: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [folder, mount_point, socket] = &words[..] else {
        bail!("usage: faulty-store FOLDER MOUNT_POINT SOCKET")
    };
    let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
    let faults = Arc::new(Faults::default());
    let mut options = Config::default();
    options.mount_options = vec![
        MountOption::FSName("faulty-store".to_owned()),
        MountOption::Subtype("faulty-store".to_owned()),
        MountOption::DefaultPermissions,
        MountOption::NoAtime,
    ];
    options.n_threads = Some(THREADS);
    let files = PassThrough::new(folder, Arc::clone(&faults));
    let session = Session::new(files, mount_point, &options)
        .with_context(|| format!("cannot mount at {}", mount_point.display()))?;
    let listener =
        UnixListener::bind(socket).with_context(|| format!("cannot bind {}", socket.display()))?;
    thread::spawn(move || control::serve(&listener, &faults));
    Ok(session.run()?)
}
