//! fio on disks of several nodes, and what each disk got by when.
#![allow(unreachable_pub, dead_code, reason = "a module of several test binaries")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use suimon_rig::{Rig, fio};

/// What is promised holds in each window as long as this.
pub const WINDOW_MS: u64 = 5000;
const OPERATION: f64 = 8192.0;

pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

/// fio on disks of a node, for so many seconds.
pub struct Load {
    fio: Child,
    folder: PathBuf,
    disks: usize,
}

impl Load {
    /// Random reads of 8 KiB on disks behind this NBD socket, `depth` of each outstanding.
    pub fn begin(rig: &Rig, socket: &str, disks: &[&str], depth: u32, seconds: u32) -> Self {
        let folder = PathBuf::from(rig.path(&rig.unique("load")));
        fs::create_dir_all(&folder).unwrap();
        let targets: Vec<_> =
            disks.iter().map(|disk| fio::FioTarget::Nbd { socket, disk }).collect();
        let job = format!(
            "rw=randread bs=8k iodepth={depth} size=64m time_based runtime={seconds} randrepeat=0"
        );
        fs::write(folder.join("job"), fio::job_file(&targets, &job)).unwrap();
        let fio = Command::new("fio")
            .arg("job")
            .current_dir(&folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { fio, folder, disks: disks.len() }
    }

    /// What each disk got, when it has ended.
    pub fn end(mut self) -> Vec<Got> {
        self.fio.wait().unwrap();
        (0..self.disks).map(|at| Got::read(&self.folder, at)).collect()
    }
}

/// Operations that a disk got, by when.
#[derive(Clone, Debug)]
pub struct Got(Vec<(f64, f64)>);

impl Got {
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

    #[allow(clippy::cast_precision_loss, reason = "milliseconds are small")]
    /// Operations a second between two times, in milliseconds since 1970.
    pub fn rate(&self, from: u64, until: u64) -> f64 {
        (self.until(until as f64) - self.until(from as f64)) * 1000.0 / (until - from) as f64
    }
}

/// The least that disks together got in any window, in operations a second.
pub fn least(got: &[Got], from: u64, until: u64) -> f64 {
    sums(got, from, until).fold(f64::MAX, f64::min)
}

/// In no window all disks of all nodes together get more than the store can do.
pub fn assert_within(got: &[Got], capability: u64, from: u64, until: u64) {
    let highest = sums(got, from, until).fold(0.0, f64::max);
    eprintln!("  at most {highest:.0} of {capability} in 5 s");
    assert!(highest <= capability as f64 * 1.02, "{highest}");
}

fn sums(got: &[Got], from: u64, until: u64) -> impl Iterator<Item = f64> {
    let begins = (from..until.saturating_sub(WINDOW_MS)).step_by(250);
    begins.map(|begin| got.iter().map(|of| of.rate(begin, begin + WINDOW_MS)).sum())
}
