//! fio on disks for some seconds, with the operations delivered over time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::Rig;
use crate::fio::{self, FioTarget};

/// Size of an operation in bytes: 8 KiB.
const OPERATION: f64 = 8192.0;

/// Returns milliseconds since 1970-01-01 UTC, as in fio's logs.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// fio on disks of one NBD socket: random reads of 8 KiB without a limit.
#[derive(Debug)]
pub struct LastingLoad {
    fio: Child,
    folder: PathBuf,
    disks: usize,
}

impl LastingLoad {
    /// Starts the load, with `depth` requests of each disk in flight, for a number of seconds.
    ///
    /// # Errors
    /// fio could not be started.
    pub fn begin(
        rig: &Rig,
        socket: &str,
        disks: &[&str],
        depth: u32,
        seconds: u32,
    ) -> Result<Self> {
        let folder = PathBuf::from(rig.path(&rig.unique("load")));
        fs::create_dir_all(&folder)?;
        let targets: Vec<_> = disks.iter().map(|disk| FioTarget::Nbd { socket, disk }).collect();
        let job =
            format!("rw=randread bs=8k iodepth={depth} time_based runtime={seconds} randrepeat=0");
        fs::write(folder.join("job"), fio::job_file(&targets, &job))?;
        let fio = Command::new("fio")
            .arg("job")
            .current_dir(&folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("fio")?;
        Ok(Self { fio, folder, disks: disks.len() })
    }

    /// Stops fio and returns the operations delivered to each disk.
    ///
    /// # Errors
    /// fio cannot be signalled or waited for.
    pub fn stop(self) -> Result<Vec<Delivered>> {
        let id = i32::try_from(self.fio.id()).ok().and_then(Pid::from_raw).context("fio's id")?;
        kill_process(id, Signal::INT)?;
        self.end()
    }

    /// Waits for fio's end and returns the operations delivered to each disk.
    ///
    /// # Errors
    /// fio cannot be waited for.
    pub fn end(mut self) -> Result<Vec<Delivered>> {
        self.fio.wait()?;
        Ok((0..self.disks).map(|index| Delivered::read(&self.folder, index)).collect())
    }
}

impl Drop for LastingLoad {
    /// Kills fio if the test failed before it stopped the load.
    fn drop(&mut self) {
        let _ = self.fio.kill();
        let _ = self.fio.wait();
    }
}

/// Operations delivered to a disk over time: cumulative sums at milliseconds since 1970.
#[derive(Clone, Debug)]
pub struct Delivered(Vec<(f64, f64)>);

impl Delivered {
    fn read(folder: &Path, index: usize) -> Self {
        let mut sum = 0.0;
        let mut points = Vec::new();
        let mut before = None;
        for (end, bytes) in fio::seconds(folder, index).unwrap_or_default() {
            #[allow(clippy::cast_precision_loss, reason = "milliseconds and bytes are small")]
            let (end, rate) = (end as f64, bytes as f64 / OPERATION);
            let begin = before.unwrap_or(end - 1000.0);
            points.extend(points.is_empty().then_some((begin, 0.0)));
            sum += rate * (end - begin) / 1000.0;
            points.push((end, sum));
            before = Some(end);
        }
        Self(points)
    }

    /// Returns the operations delivered until `time_ms`.
    fn delivered_until(&self, time_ms: f64) -> f64 {
        let after = self.0.partition_point(|point| point.0 < time_ms);
        match (after.checked_sub(1).map(|index| self.0[index]), self.0.get(after)) {
            (Some((t0, s0)), Some((t1, s1))) => {
                s0 + (s1 - s0) * (time_ms - t0) / (t1 - t0).max(1e-9)
            }
            (Some((_, sum)), None) => sum,
            (None, _) => 0.0,
        }
    }

    /// Returns the operations per second between two instants.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "milliseconds are small")]
    pub fn rate(&self, start_ms: u64, until: u64) -> f64 {
        (self.delivered_until(until as f64) - self.delivered_until(start_ms as f64)) * 1000.0
            / (until - start_ms) as f64
    }
}

/// Length in milliseconds of the windows in which guaranteed rates are met.
pub const WINDOW_MS: u64 = 5000;

/// Returns the smallest and the largest rate of the disks together in any window between two
/// instants, in operations per second.
#[must_use]
pub fn extremes(delivered: &[Delivered], start_ms: u64, until: u64) -> (f64, f64) {
    let starts = (start_ms..until.saturating_sub(WINDOW_MS)).step_by(250);
    let sums = starts
        .map(|begin| delivered.iter().map(|disk| disk.rate(begin, begin + WINDOW_MS)).sum::<f64>());
    sums.fold((f64::MAX, 0.0), |(min, max), sum| (min.min(sum), max.max(sum)))
}
