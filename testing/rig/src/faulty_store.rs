//! Folder whose file system fails, delays or truncates operations by rules.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_test_programs::{StoreFault, StoreOperation};

use crate::command::run;
use crate::process::Process;
use crate::programs::program;
use crate::rig::Rig;
use crate::wait::{is_listening, wait_until};

/// Time limit for the file system to be mounted.
const START_LIMIT: Duration = Duration::from_secs(90);
/// Time limit of a request to the program.
const REPLY_LIMIT: Duration = Duration::from_secs(60);

/// FUSE file system with injected faults (`testing/faulty-store`). Dropping it resumes held
/// operations and unmounts it, also if files on it are open.
#[derive(Debug)]
pub struct FaultyStore {
    process: Process,
    point: String,
    files: String,
    control: Mutex<BufReader<UnixStream>>,
}

/// Operations of a [`FaultyStore`] since its faults were cleared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts(BTreeMap<String, u64>);

impl StoreCounts {
    /// Returns the number of operations of a kind, those with faults included.
    #[must_use]
    pub fn of(&self, operation: StoreOperation) -> u64 {
        self.named(operation.name())
    }

    /// Returns the number of injected faults.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.named("faults")
    }

    /// Returns the number of operations that are held.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.named("held")
    }

    fn named(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

impl FaultyStore {
    /// Mounts an empty file system without faults.
    ///
    /// # Errors
    /// The kernel does not support FUSE, or the program is not built.
    pub fn new(rig: &Rig) -> Result<Self> {
        let name = rig.unique("faulty");
        let [point, files, socket] =
            ["", ".files", ".sock"].map(|suffix| rig.path(&format!("{name}{suffix}")));
        for folder in [&point, &files] {
            std::fs::create_dir(folder).with_context(|| folder.clone())?;
        }
        let words = [&program("faulty-store")?, &files, &point, &socket];
        let mut process = Process::start(rig, "faulty-store", &words)?;
        wait_until("socket of faulty-store", START_LIMIT, || {
            process.check_running()?;
            Ok(is_listening(&socket))
        })?;
        let stream = UnixStream::connect(&socket).with_context(|| socket.clone())?;
        stream.set_read_timeout(Some(REPLY_LIMIT))?;
        Ok(Self { process, point, files, control: Mutex::new(BufReader::new(stream)) })
    }

    /// Returns the path of the file system.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.point
    }

    /// Returns the folder with the same files, without faults.
    #[must_use]
    pub fn files(&self) -> &str {
        &self.files
    }

    /// Injects a fault from now on. Of several rules for an operation, the oldest one that injects
    /// a fault applies.
    ///
    /// # Errors
    /// The program has ended.
    pub fn inject(&self, fault: &StoreFault) -> Result<()> {
        self.request(&format!("fault {fault}")).map(drop)
    }

    /// Removes all faults, resumes held operations and sets the counts to zero.
    ///
    /// # Errors
    /// The program has ended.
    pub fn clear(&self) -> Result<()> {
        self.request("clear").map(drop)
    }

    /// Returns the operations since the last [`FaultyStore::clear`].
    ///
    /// # Errors
    /// The program has ended.
    pub fn counts(&self) -> Result<StoreCounts> {
        let reply = self.request("counts")?;
        let counts = reply.split_whitespace().map(|word| {
            let (name, number) = word.split_once('=').with_context(|| reply.clone())?;
            Ok((name.to_owned(), number.parse()?))
        });
        Ok(StoreCounts(counts.collect::<Result<_>>()?))
    }

    fn request(&self, request: &str) -> Result<String> {
        let mut control = self.control.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        writeln!(control.get_mut(), "{request}")?;
        let mut reply = String::new();
        control.read_line(&mut reply).with_context(|| format!("no reply to `{request}`"))?;
        ensure!(!reply.is_empty() && !reply.starts_with("error"), "`{request}`: {reply}");
        Ok(reply.trim().to_owned())
    }
}

impl Drop for FaultyStore {
    fn drop(&mut self) {
        let _ = self.clear();
        let _ = run(&["umount", "--lazy", &self.point]);
        // Operations of processes that still have open files fail.
        self.process.kill();
    }
}
