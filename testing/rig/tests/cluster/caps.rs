//! Rates that the cluster grants to nodes on a shared store, and the requests that their disks
//! complete.
//!
//! Load on the machine changes how many requests disks complete, but neither the granted rates nor
//! the fact that disks do not exceed them. Therefore minimums and the use of the remaining capacity
//! are checked in the granted rates, and maximums in the number of completed requests. That
//! backlogged disks reach their granted rates is tested in virtual time
//! (`policy/storage_qos/tests`, `plane/storage_engine/src/scheduling/tests.rs`, and for clusters
//! `apps/sim-storage/src/storage/cluster_tests.rs`); the rates are printed here.

use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_rig::{Daemon, DiskCounts, Sampling, wait_until};

pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
/// Duration of a load in seconds, longer than any test; the test stops the load.
pub(crate) const LASTS_S: u32 = 1800;
/// Length of the windows in each of which a maximum holds.
pub(crate) const WINDOW: Duration = Duration::from_secs(5);

/// Rate that the cluster grants to a node on a store or a policy, and rate of the node's disks.
#[derive(Clone, Debug)]
pub(crate) struct Cap {
    /// Currently granted rate in operations per second.
    pub(crate) iops: u64,
    /// Rate that the node keeps when its lease expires, in operations per second.
    pub(crate) reserved: u64,
    /// Rate delivered to all disks of the node over the last 5 s, in operations per second.
    pub(crate) delivered: u64,
}

impl Cap {
    /// Reads a `ClusterCap` of the API and the delivered rate of all disks of the node.
    pub(crate) fn read(cap: &Value, daemon: &Daemon) -> Self {
        let flows = daemon.json(&["qos", "flows"]).unwrap();
        let delivered_iops =
            |flow: &Value| flow["last_5_s"]["delivered_iops"].as_u64().unwrap_or(0);
        let delivered = flows.as_array().into_iter().flatten().map(delivered_iops).sum();
        let number = |key: &str| cap[key].as_u64().unwrap_or(0);
        Self { iops: number("iops"), reserved: number("reserved_iops"), delivered }
    }

    /// Returns true if the disks use at least 90 % of the granted rate, so that it may limit them.
    fn holds_back(&self) -> bool {
        self.delivered * 10 >= self.iops * 9
    }
}

/// Waits until the nodes together are granted at least 95 % of `due`, or no node is limited by its
/// granted rate because the machine delivers less. Returns the granted rates.
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

/// Asserts that the disks together complete no more requests in any window between two instants
/// than `max` (in operations per second) permits.
///
/// A counted request was completed within the window, so load on the machine cannot increase the
/// counts. Permitted in addition to `max` are 2 %, the requests of the catch-up time of 20 ms, and
/// `depth` requests that were dispatched before the window.
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

/// As [`assert_within`], for a little more than one window that begins now.
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
