//! What experiments share: the folder of records, the request to stop, the beat of seconds.

use std::env;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use suimon_rig::StopSignal;

/// How often somebody who waits looks whether he is asked to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Where experiments are done.
pub(crate) struct Lab {
    folder: PathBuf,
    stop: StopSignal,
}

/// What a plan came to.
pub(crate) struct Outcome {
    /// For people.
    pub(crate) summary: String,
    /// Runs that did not reach their end.
    pub(crate) failures: u32,
}

impl Lab {
    /// Records go to the folder in `SUIMON_EXPERIMENT_FOLDER`, or to `target/experiments`.
    pub(crate) fn new() -> Result<Self> {
        let folder = env::var("SUIMON_EXPERIMENT_FOLDER");
        let folder = PathBuf::from(folder.unwrap_or_else(|_| "target/experiments".to_owned()));
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Self { folder, stop: StopSignal::new()? })
    }

    /// The file of a plan's record.
    pub(crate) fn record_of(&self, plan: &str) -> PathBuf {
        self.folder.join(format!("{plan}.json"))
    }

    /// Writes a record, in place of what was there.
    pub(crate) fn keep(&self, plan: &str, record: &impl Serialize) -> Result<()> {
        let path = self.record_of(plan);
        std::fs::write(&path, serde_json::to_string_pretty(record)?)
            .with_context(|| path.display().to_string())
    }

    /// Writes what was measured one after the other as CSV, beside the record.
    pub(crate) fn keep_series(&self, plan: &str, lines: &str) -> Result<()> {
        let path = self.folder.join(format!("{plan}.csv"));
        std::fs::write(&path, lines).with_context(|| path.display().to_string())
    }

    /// Whether it is time to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.is_asked()
    }

    /// Fails if it is time to stop.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(!self.is_stopping(), "asked to stop");
        Ok(())
    }

    /// Calls `look` at the end of each of so many seconds.
    pub(crate) fn each_second(
        &self,
        seconds: u64,
        mut look: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let began = Instant::now();
        for number in 1..=seconds {
            let ends = began + Duration::from_secs(number);
            loop {
                self.check()?;
                let left = ends.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                thread::sleep(left.min(LOOK_EVERY));
            }
            look()?;
        }
        Ok(())
    }
}
