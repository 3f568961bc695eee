//! Resources of the daemon at a checkpoint, while all loads are parked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::memory::AnonymousMemory;

/// Threads of blocking calls end after 10 s without a call, and the daemon closes connections whose
/// clients have left. On a loaded machine both may take longer.
const SETTLE_LIMIT: Duration = Duration::from_secs(120);
/// Longer than the pool for blocking calls keeps a thread without a call.
const STEADY: Duration = Duration::from_secs(12);
/// Interval at which the daemon returns free memory to the system
/// (`apps/suimond/src/free_memory.rs`).
const RETURN_EVERY: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Objects of the kernel that the daemon holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Number of descriptors by what they refer to. Numbers of sockets and pipes are left out.
    descriptors: BTreeMap<String, usize>,
    /// Number of threads by name, without io_uring workers, whose number is limited separately.
    threads: BTreeMap<String, usize>,
}

impl Held {
    fn read(process: u32) -> Result<Self> {
        let mut holdings = Self::default();
        // A descriptor or thread may disappear before it is read.
        for entry in fs::read_dir(format!("/proc/{process}/fd"))?.flatten() {
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            let target = target.to_string_lossy().into_owned();
            let kind = match target.split_once(":[") {
                Some((kind @ ("socket" | "pipe"), _)) => kind.to_owned(),
                _ => target,
            };
            *holdings.descriptors.entry(kind).or_default() += 1;
        }
        for entry in fs::read_dir(format!("/proc/{process}/task"))?.flatten() {
            let Ok(name) = fs::read_to_string(entry.path().join("comm")) else { continue };
            if !name.starts_with("iou-") {
                *holdings.threads.entry(name.trim().to_owned()).or_default() += 1;
            }
        }
        Ok(holdings)
    }

    fn counts(&self) -> (usize, usize) {
        (self.descriptors.values().sum(), self.threads.values().sum())
    }

    /// Returns a text with the objects whose number differs in `other`.
    pub(super) fn difference(&self, other: &Self) -> String {
        let mut text = String::new();
        for (kind, before, now) in [
            ("descriptor", &self.descriptors, &other.descriptors),
            ("thread", &self.threads, &other.threads),
        ] {
            let names: BTreeSet<_> = before.keys().chain(now.keys()).collect();
            for name in names {
                let count =
                    |counts: &BTreeMap<String, usize>| counts.get(name).copied().unwrap_or(0);
                if count(before) != count(now) {
                    let _ = write!(text, "{kind} {name}: {} -> {}; ", count(before), count(now));
                }
            }
        }
        text
    }
}

/// Resources at a checkpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct Checkpoint {
    /// Time since the loads began.
    pub(super) time: Duration,
    pub(super) held: Held,
    /// Anonymous memory of the daemon in KiB.
    pub(super) anonymous: AnonymousMemory,
    pub(super) files: BTreeSet<PathBuf>,
    /// Allocated bytes of the daemon's files.
    pub(super) file_bytes: u64,
    /// Objects that still differed from the first checkpoint after [`SETTLE_LIMIT`]; empty if none.
    pub(super) difference: String,
}

/// Process and folders of the daemon to be examined.
pub(super) struct Watched {
    pub(super) process: u32,
    pub(super) folders: Vec<PathBuf>,
}

impl Watched {
    /// Takes the first checkpoint, once descriptors and threads have been constant for [`STEADY`].
    pub(super) fn first(&self, time: Duration) -> Result<Checkpoint> {
        let deadline = Instant::now() + SETTLE_LIMIT;
        let (mut holdings, mut since) = (Held::read(self.process)?, Instant::now());
        while since.elapsed() < STEADY {
            if Instant::now() > deadline {
                bail!("descriptors and threads do not settle: {holdings:?}");
            }
            std::thread::sleep(LOOK_EVERY);
            let now = Held::read(self.process)?;
            if now != holdings {
                (holdings, since) = (now, Instant::now());
            }
        }
        self.take(time, holdings, String::new())
    }

    /// Takes a checkpoint once descriptors and threads equal those of `first`, at most after
    /// [`SETTLE_LIMIT`].
    pub(super) fn next(&self, time: Duration, first: &Checkpoint) -> Result<Checkpoint> {
        let deadline = Instant::now() + SETTLE_LIMIT;
        loop {
            let holdings = Held::read(self.process)?;
            let difference = first.held.difference(&holdings);
            if difference.is_empty() || Instant::now() > deadline {
                return self.take(time, holdings, difference);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn take(&self, time: Duration, holdings: Held, difference: String) -> Result<Checkpoint> {
        let (mut files, mut file_bytes) = (BTreeSet::new(), 0);
        for folder in &self.folders {
            list(folder, &mut files, &mut file_bytes);
        }
        let anonymous = self.settled_memory()?;
        Ok(Checkpoint { time, held: holdings, anonymous, files, file_bytes, difference })
    }

    /// Returns the lowest anonymous memory within two intervals at which the daemon returns free
    /// memory.
    fn settled_memory(&self) -> Result<AnonymousMemory> {
        let until = Instant::now() + 2 * RETURN_EVERY + LOOK_EVERY;
        let mut lowest = AnonymousMemory::read(self.process)?;
        while Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
            let now = AnonymousMemory::read(self.process)?;
            if now.total_kib() < lowest.total_kib() {
                lowest = now;
            }
        }
        Ok(lowest)
    }
}

fn list(folder: &Path, files: &mut BTreeSet<PathBuf>, bytes: &mut u64) {
    use std::os::unix::fs::MetadataExt;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            list(&entry.path(), files, bytes);
        }
        *bytes += metadata.blocks() * 512;
        files.insert(entry.path());
    }
}

impl Checkpoint {
    /// Returns the columns of the report.
    pub(super) fn columns(&self) -> String {
        let (descriptors, threads) = self.held.counts();
        format!(
            "{:7.1} {:10} {descriptors:6} {threads:7} {:6} {:9}",
            self.time.as_secs_f64() / 60.0,
            self.anonymous.total_kib(),
            self.files.len(),
            self.file_bytes >> 10,
        )
    }
}
