//! Folder of results with one folder per run.
//!
//! `head.json` is written before the first repetition, a line is appended to `parts.jsonl` after
//! each repetition of a case, and `run.json` with all data is written at the end. Whatever ends the
//! program, completed repetitions are kept and the run can be resumed.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use suimon_lab_run::folder::{
    PROGRESS_FILE, REPETITIONS_FILE, RUN_FILE, RUN_METADATA_FILE, RunProgress, check_id,
};
use suimon_lab_run::{FORMAT_VERSION, Repetition, Run};

/// Number of attempts to lock a folder after a failure: another program may hold the lock for a
/// moment to find out whether a run is in progress.
const LOCK_RETRIES: u32 = 20;
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Folder that contains the results of all runs.
#[derive(Clone, Debug)]
pub(crate) struct ResultsFolder {
    folder: PathBuf,
}

/// Folder that contains the results of one run.
#[derive(Clone, Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
}

impl ResultsFolder {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Creates a folder for a run that begins now.
    pub(crate) fn create_run_folder(&self, plan: &str) -> Result<RunFolder> {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let now: String = now.chars().filter(|character| !matches!(character, ':' | '-')).collect();
        for number in 1.. {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let path = self.folder.join(format!("{plan}-{}{suffix}", now.trim_end_matches('Z')));
            fs::create_dir_all(&self.folder).with_context(|| self.write_error())?;
            match fs::create_dir(&path) {
                Ok(()) => return Ok(RunFolder { path }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| self.write_error()),
            }
        }
        bail!("no unused name for the run was found")
    }

    /// Returns the folder of a run, given by its id, by its path, or by a plan for its last run.
    pub(crate) fn find(&self, name: &str) -> Result<RunFolder> {
        if name.contains('/') {
            let path = Path::new(name);
            // A path of a file in the folder is accepted too.
            let path = if path.is_file() { path.parent().unwrap_or(path) } else { path };
            return RunFolder::open(path.to_owned());
        }
        check_id("run", name)?;
        let path = self.folder.join(name);
        if path.is_dir() {
            return RunFolder::open(path);
        }
        match self.ids()?.into_iter().rfind(|id| is_run_of(id, name)) {
            Some(id) => RunFolder::open(self.folder.join(id)),
            None => bail!(
                "there is no run `{name}` in {}; `suimon lab list --runs` lists the existing ones",
                self.folder.display()
            ),
        }
    }

    /// Returns the ids of all runs, by plan and time.
    pub(crate) fn ids(&self) -> Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(|| self.write_error()),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.path().join(RUN_METADATA_FILE).is_file()
                || entry.path().join(RUN_FILE).is_file()
            {
                ids.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        ids.sort();
        Ok(ids)
    }

    fn write_error(&self) -> String {
        format!(
            "cannot write results to {}; name another folder with --results DIR or \
             SUIMON_LAB_RESULTS",
            self.folder.display()
        )
    }
}

impl RunFolder {
    fn open(path: PathBuf) -> Result<Self> {
        let is_run = path.join(RUN_METADATA_FILE).is_file() || path.join(RUN_FILE).is_file();
        ensure!(
            is_run,
            "{} is not a run: it has neither {RUN_FILE} nor {RUN_METADATA_FILE}",
            path.display()
        );
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the id of the run.
    pub(crate) fn id(&self) -> String {
        self.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// Locks the folder, which marks the run as in progress, until the returned file is dropped or
    /// the program ends.
    pub(crate) fn lock(&self) -> Result<File> {
        let lock_file = try_lock(&self.path)?;
        lock_file.with_context(|| format!("another program is writing the run {}", self.id()))
    }

    /// Returns true if the run is complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.path.join(RUN_FILE).is_file()
    }

    /// Reads the record of a run, complete or not.
    pub(crate) fn load(&self) -> Result<Run> {
        let name = if self.is_complete() { RUN_FILE } else { RUN_METADATA_FILE };
        let path = self.path.join(name);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let mut run: Run = serde_json::from_str(&text).with_context(|| {
            format!(
                "{} is damaged, or was written by another version of suimon-lab",
                path.display()
            )
        })?;
        ensure!(
            run.format_version == FORMAT_VERSION,
            "{} has format {}, but this program reads {FORMAT_VERSION}; create the report with the \
             program that made the run",
            path.display(),
            run.format_version
        );
        if !self.is_complete() {
            run.repetitions = self.parts()?;
            run.duration_s = run.repetitions.iter().map(|part| part.duration_s).sum();
        }
        Ok(run)
    }

    /// Writes the data that is known before the first repetition.
    pub(crate) fn write_header(&self, run: &Run) -> Result<()> {
        self.write(RUN_METADATA_FILE, &serde_json::to_vec(run)?)
    }

    /// Appends a completed repetition of a case and blocks until it is on the disk.
    pub(crate) fn add(&self, part: &Repetition) -> Result<()> {
        let path = self.path.join(REPETITIONS_FILE);
        let mut line = serde_json::to_vec(part)?;
        line.push(b'\n');
        let add = || -> std::io::Result<()> {
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            file.write_all(&line)?;
            file.sync_data()
        };
        add().with_context(|| self.unwritten(REPETITIONS_FILE))
    }

    /// Writes the complete record of the run.
    pub(crate) fn finish(&self, run: &Run) -> Result<()> {
        self.write(RUN_FILE, &serde_json::to_vec_pretty(run)?)
    }

    /// Writes the progress for observers, without waiting for the disk.
    pub(crate) fn write_progress(&self, progress: &RunProgress) -> Result<()> {
        let (path, unfinished) =
            (self.path.join(PROGRESS_FILE), self.path.join("progress.json.part"));
        let write = || -> std::io::Result<()> {
            fs::write(&unfinished, serde_json::to_vec(progress)?)?;
            fs::rename(&unfinished, &path)
        };
        write().with_context(|| self.unwritten(PROGRESS_FILE))
    }

    /// Writes a file of the run atomically.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let (path, unfinished) = (self.path.join(name), self.path.join(format!("{name}.part")));
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&unfinished)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)
        };
        write().with_context(|| self.unwritten(name))
    }

    /// Reads the completed repetitions. An incomplete last line is ignored.
    fn parts(&self) -> Result<Vec<Repetition>> {
        let path = self.path.join(REPETITIONS_FILE);
        let Ok(file) = File::open(&path) else { return Ok(Vec::new()) };
        let mut parts = Vec::new();
        for line in BufReader::new(file).lines() {
            let line = line.with_context(|| path.display().to_string())?;
            match serde_json::from_str(&line) {
                Ok(part) => parts.push(part),
                Err(_) => break,
            }
        }
        Ok(parts)
    }

    fn unwritten(&self, name: &str) -> String {
        let path_text = self.path.display();
        format!(
            "cannot write {name} in {path_text}; earlier results are kept. Free space, then \
             continue with `suimon lab run --resume {}`",
            self.id()
        )
    }
}

/// Returns true if a run's id consists of the plan's id and a time.
pub(crate) fn is_run_of(id: &str, plan: &str) -> bool {
    let suffix = id.strip_prefix(plan).and_then(|suffix| suffix.strip_prefix('-'));
    suffix.is_some_and(|suffix| suffix.starts_with(|first: char| first.is_ascii_digit()))
}

/// Acquires an exclusive lock on a folder; `None` if another program holds it.
pub(crate) fn try_lock(folder: &Path) -> Result<Option<File>> {
    let file = File::open(folder).with_context(|| folder.display().to_string())?;
    for _ in 0..LOCK_RETRIES {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => thread::sleep(LOCK_RETRY_INTERVAL),
            Err(errno) => return Err(errno).with_context(|| folder.display().to_string()),
        }
    }
    Ok(None)
}

#[cfg(test)]
pub(crate) mod tests;
