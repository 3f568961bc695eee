//! fio on disks for some seconds, and what each disk got at each moment of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::Rig;
use crate::fio::{self, FioTarget};

/// What a request of the load counts as one operation by: 8 KiB.
const OPERATION: f64 = 8192.0;

/// Milliseconds since 1970-01-01 UTC, as fio's logs have them.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// fio on disks of one NBD socket: random reads of 8 KiB, as many as they get.
#[derive(Debug)]
pub struct LastingLoad {
    fio: Child,
    folder: PathBuf,
    disks: usize,
}

impl LastingLoad {
    /// Begins, with `depth` requests of each disk at once, for so many seconds.
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

    /// Stops fio and returns what each disk got until then.
    ///
    /// # Errors
    /// fio cannot be signalled or waited for.
    pub fn stop(self) -> Result<Vec<Delivered>> {
        let id = i32::try_from(self.fio.id()).ok().and_then(Pid::from_raw).context("fio's id")?;
        kill_process(id, Signal::INT)?;
        self.end()
    }

    /// What each disk got, when it has ended.
    ///
    /// # Errors
    /// fio cannot be waited for.
    pub fn end(mut self) -> Result<Vec<Delivered>> {
        self.fio.wait()?;
        Ok((0..self.disks).map(|at| Delivered::read(&self.folder, at)).collect())
    }
}

impl Drop for LastingLoad {
    /// Ends fio if the test failed before it stopped the load.
    fn drop(&mut self) {
        let _ = self.fio.kill();
        let _ = self.fio.wait();
    }
}

/// Operations that a disk got, by when: in sum, at milliseconds since 1970.
#[derive(Clone, Debug)]
pub struct Delivered(Vec<(f64, f64)>);

impl Delivered {
    fn read(folder: &Path, at: usize) -> Self {
        let mut sum = 0.0;
        let mut points = Vec::new();
        let mut before = None;
        for (end, bytes) in fio::seconds(folder, at).unwrap_or_default() {
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

    /// All of it up to then.
    fn until(&self, at: f64) -> f64 {
        let after = self.0.partition_point(|point| point.0 < at);
        match (after.checked_sub(1).map(|index| self.0[index]), self.0.get(after)) {
            (Some((t0, s0)), Some((t1, s1))) => s0 + (s1 - s0) * (at - t0) / (t1 - t0).max(1e-9),
            (Some((_, sum)), None) => sum,
            (None, _) => 0.0,
        }
    }

    /// Operations per second between two moments.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "milliseconds are small")]
    pub fn rate(&self, from: u64, until: u64) -> f64 {
        (self.until(until as f64) - self.until(from as f64)) * 1000.0 / (until - from) as f64
    }
}

/// What is promised holds in each window as long as this, in milliseconds.
pub const WINDOW_MS: u64 = 5000;

/// The least and the most that disks together got in any window between two moments, in operations
/// per second.
#[must_use]
pub fn extremes(all: &[Delivered], from: u64, until: u64) -> (f64, f64) {
    let begins = (from..until.saturating_sub(WINDOW_MS)).step_by(250);
    let sums =
        begins.map(|begin| all.iter().map(|of| of.rate(begin, begin + WINDOW_MS)).sum::<f64>());
    sums.fold((f64::MAX, 0.0), |(least, most), sum| (least.min(sum), most.max(sum)))
}
