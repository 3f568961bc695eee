//! What nodes may do of a shared store, and what their disks do of it.
//!
//! A busy machine changes how much disks do, but neither what the cluster lets them do nor that
//! they do no more. So minimums and the use of what is left are looked at in the nodes' caps, and
//! maximums in the number of requests that were completed. That backlogged disks reach their caps
//! is tested in virtual time (`policy/storage_qos/tests`,
//! `plane/storage_engine/src/scheduling/tests.rs`, and of clusters
//! `apps/sim/src/storage/cluster_tests.rs`); rates are printed here.

use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_rig::{Daemon, DiskCounts, Sampling, wait_until};

pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
/// Load that outlasts any test; the test ends it.
pub(crate) const LASTS_S: u32 = 1800;
/// Maximums hold in every window of this length.
pub(crate) const WINDOW: Duration = Duration::from_secs(5);

/// What a node may do of a store or of a policy, and what its disks do of that.
#[derive(Clone, Debug)]
pub(crate) struct Cap {
    /// Now.
    pub(crate) iops: u64,
    /// Without the cluster, too.
    pub(crate) reserved: u64,
    /// Delivered over the last 5 s.
    pub(crate) delivered: u64,
}

impl Cap {
    /// Reads a `ClusterCap` and what all disks of the node got.
    pub(crate) fn read(cap: &Value, daemon: &Daemon) -> Self {
        let flows = daemon.json(&["qos", "flows"]).unwrap();
        let delivered_iops =
            |flow: &Value| flow["last_5_s"]["delivered_iops"].as_u64().unwrap_or(0);
        let delivered = flows.as_array().into_iter().flatten().map(delivered_iops).sum();
        let number = |key: &str| cap[key].as_u64().unwrap_or(0);
        Self { iops: number("iops"), reserved: number("reserved_iops"), delivered }
    }

    /// True if the disks do so much of the cap that they may want more than it.
    fn holds_back(&self) -> bool {
        self.delivered * 10 >= self.iops * 9
    }
}

/// Waits until nodes together may do at least 95 % of so much, or none of them is held back by
/// its cap because the machine lets them do less. Returns their caps.
pub(crate) fn wait_used(description: &str, due: u64, caps: impl Fn() -> Vec<Cap>) -> Vec<Cap> {
    let mut last = Vec::new();
    let used = wait_until(description, PATIENCE, || {
        last = caps();
        let sum: u64 = last.iter().map(|cap| cap.iops).sum();
        Ok(sum * 100 >= due * 95 || !last.iter().any(Cap::holds_back))
    });
    used.unwrap_or_else(|error| panic!("{error:#}: {last:?}, and {due} are due"));
    eprintln!("  {description}: {last:?} of {due}");
    last
}

/// Disks together complete no more requests in any window between two moments than `max` allows.
///
/// The counts are of requests that were completed within the window at most, so that a busy
/// machine cannot make them too many. To `max` comes 2 %, what it carries in the 20 ms that disks
/// may make up for, and `depth` requests that were dispatched before the window.
pub(crate) fn assert_within(
    description: &str,
    counts: &[DiskCounts],
    (start, wait_until): (Instant, Instant),
    max: u64,
    depth: u64,
) {
    let max_requests = DiskCounts::most(counts, WINDOW, start, wait_until);
    let rates: Vec<_> =
        counts.iter().map(|disk_counts| disk_counts.rate(start, wait_until).round()).collect();
    eprintln!(
        "  {description}: at most {max_requests} in {WINDOW:?} at {max} IOPS; {rates:?} a second"
    );
    let allowed = max * WINDOW.as_secs() * 102 / 100 + max / 50 + depth + 2;
    assert!(
        max_requests <= allowed,
        "{description}: {max_requests} requests in {WINDOW:?}, {allowed} are allowed"
    );
}

/// The same from now on for a little more than one window.
pub(crate) fn assert_within_now(
    description: &str,
    disks: &[(&Daemon, &str)],
    max: u64,
    depth: u64,
) {
    let start = Instant::now();
    let samplings: Vec<_> =
        disks.iter().map(|(daemon, disk)| Sampling::begin(daemon, &[disk])).collect();
    std::thread::sleep(WINDOW + Duration::from_millis(500));
    let counts: Vec<_> =
        samplings.into_iter().flat_map(|sampling| sampling.end().unwrap()).collect();
    assert_within(description, &counts, (start, Instant::now()), max, depth);
}
