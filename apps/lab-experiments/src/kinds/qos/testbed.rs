//! Setup: a store with one host, or with a cluster of nodes and an etcd of three members.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use suimon_rig::{Daemon, Etcd, Rig, SlowDisk};

use super::Location;
use super::node::{Node, NodeSpec};
use super::record::SecondSample;
use super::settings::{Limits, Settings};
use crate::environment::Environment;

/// Capacity configured before the measurement, high enough to have no effect.
const NO_LIMIT_IOPS: u64 = 1_000_000;
/// Time limit for the nodes to form a cluster.
const CLUSTER_LIMIT: Duration = Duration::from_secs(60);
/// Upper limit of metadata in a disk's file, in bytes.
const FORMAT_BYTES: u64 = 8 << 20;
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Setup of the measurement. Fields are dropped in order.
pub(super) struct Testbed<'a> {
    nodes: Vec<Node>,
    _etcd: Option<Etcd>,
    _disk: Option<SlowDisk>,
    _files: Rig,
    settings: &'a Settings,
    started: Instant,
    last: Instant,
    _rig: Rig,
}

impl<'a> Testbed<'a> {
    /// Creates the disks, writes each completely once, and starts the load.
    pub(super) fn set_up(
        settings: &'a Settings,
        location: Location,
        environment: &Environment<'_>,
    ) -> Result<Self> {
        let (rig, files) = (environment.create_rig()?, environment.create_large_rig()?);
        let bytes = settings.disks().len() as u64 * ((settings.disk_mib << 20) + FORMAT_BYTES);
        let slow = |rate| SlowDisk::new(&rig, files.folder(), bytes, rate);
        let disk = settings.store_bytes_per_s.map(slow).transpose()?;
        let store = disk.as_ref().map_or(files.folder(), SlowDisk::path);
        let store = store.to_string_lossy().into_owned();
        let etcd = match location {
            Location::Host => None,
            Location::Cluster => Some(Etcd::start(&rig)?),
        };
        environment.check_not_stopped()?;
        let mut nodes = Vec::new();
        for (name, disks) in disks_by_node(settings, location) {
            let folder = rig.path(&name);
            std::fs::create_dir(&folder).with_context(|| folder.clone())?;
            let mut head = format!("[host]\nname = \"{name}\"\n");
            if let Some(etcd) = &etcd {
                head += &format!(
                    "[cluster]\nname = \"lab\"\nnode = \"{name}\"\nendpoints = {}\n",
                    etcd.endpoints()
                );
            }
            let socket = rig.path(&format!("{name}.nbd"));
            let site = NodeSpec { host_file_header: head, store: store.clone(), socket, folder };
            let capability = etcd.is_some().then_some(NO_LIMIT_IOPS);
            nodes.push(Node::start(&rig, settings, site, disks, capability)?);
        }
        let now = Instant::now();
        let mut testbed = Self {
            nodes,
            _etcd: etcd,
            _disk: disk,
            _files: files,
            settings,
            started: now,
            last: now,
            _rig: rig,
        };
        testbed.wait_settled(environment)?;
        for node in &mut testbed.nodes {
            node.start_fill(&testbed._rig, settings)?;
        }
        for node in &mut testbed.nodes {
            node.wait_written(environment)?;
        }
        for node in &mut testbed.nodes {
            node.begin_load(&testbed._rig, settings)?;
        }
        (testbed.started, testbed.last) = (Instant::now(), Instant::now());
        Ok(testbed)
    }

    /// Waits until every node of the cluster has a leader for the store and its minimum share.
    fn wait_settled(&self, environment: &Environment<'_>) -> Result<()> {
        if self._etcd.is_none() {
            return Ok(());
        }
        let started = Instant::now();
        loop {
            let mut are_settled = true;
            for node in &self.nodes {
                are_settled &= is_settled(node.daemon())?;
            }
            if are_settled {
                return Ok(());
            }
            ensure!(
                started.elapsed() < CLUSTER_LIMIT,
                "the nodes did not agree on the reservations of the store within \
                 {CLUSTER_LIMIT:?}: {}",
                self.nodes
                    .first()
                    .map_or(Ok(String::new()), |node| node.daemon().ok(&["cluster", "status"]))?
            );
            environment.wait(POLL_INTERVAL)?;
        }
    }

    /// Returns the time in seconds from the start of the load to the last reading of counters.
    pub(super) fn at_s(&self) -> f64 {
        self.last.duration_since(self.started).as_secs_f64()
    }

    /// Sets the limits and the store's capacity on all nodes. Returns the error message of the last
    /// node that rejects them; the other nodes have the new limits then.
    ///
    /// # Errors
    /// A node cannot be reached, or rejects the limits although `may_refuse` is false.
    pub(super) fn set_limits(
        &mut self,
        capacity_iops: u64,
        limits: &[Limits],
        may_refuse: bool,
    ) -> Result<Option<String>> {
        let mut rejection = None;
        for node in &mut self.nodes {
            match node.set_limits(self.settings, capacity_iops, limits)? {
                Some(rejection_text) if may_refuse => rejection = Some(rejection_text),
                Some(rejection_text) => bail!("suimon apply: {rejection_text}"),
                None => {}
            }
        }
        Ok(rejection)
    }

    /// Reads the counters of all nodes and returns the values since the previous reading.
    pub(super) fn read_second(
        &mut self,
        step: Option<usize>,
        is_change: bool,
    ) -> Result<SecondSample> {
        let mut disks = Vec::new();
        let mut spans = 0.0;
        for node in &mut self.nodes {
            let (span_s, of_node) = node.read_second()?;
            spans += span_s;
            disks.extend(of_node);
        }
        let unix = SystemTime::now().duration_since(UNIX_EPOCH)?;
        self.last = Instant::now();
        Ok(SecondSample {
            at_s: self.at_s(),
            unix_ms: u64::try_from(unix.as_millis())?,
            span_s: spans / self.nodes.len().max(1) as f64,
            step,
            is_changing_limits: is_change,
            disks,
        })
    }

    /// Ends the load on all nodes. Returns fio's bandwidth log of each disk: end of each interval
    /// in ms, and bytes per second.
    pub(super) fn end_load(&mut self) -> Result<Vec<Vec<(u64, u64)>>> {
        let mut logs = Vec::new();
        for node in &mut self.nodes {
            logs.extend(node.end_load()?);
        }
        Ok(logs)
    }
}

/// Returns the names of the nodes, each with its disks: name, and index of the group.
fn disks_by_node(settings: &Settings, location: Location) -> Vec<(String, Vec<(String, usize)>)> {
    let disks = settings.disks().into_iter().map(|(disk, group)| (disk.to_owned(), group));
    match location {
        Location::Host => vec![("experiment".to_owned(), disks.collect())],
        Location::Cluster => {
            let disks: Vec<(String, usize)> = disks.collect();
            let of_node = |index: usize| {
                let group_disks =
                    disks.iter().filter(|(_, group)| *group == index).cloned().collect();
                (format!("node-{}", index + 1), group_disks)
            };
            (0..settings.groups.len()).map(of_node).collect()
        }
    }
}

fn is_settled(daemon: &Daemon) -> Result<bool> {
    let status = daemon.json(&["cluster", "status"])?;
    let store = &status["stores"][0];
    let reserved = store["cap"]["reserved_iops"].as_u64().unwrap_or(0);
    Ok(store["leader"].is_string() && reserved > 0)
}
