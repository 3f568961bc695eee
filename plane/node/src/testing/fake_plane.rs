//! A switching plane that only remembers what it was told.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use suimon_forwarding::Learned;
use suimon_ports::{FrameSink, FrameSource, Placement, QueueHost};
use suimon_quantity::{PortId, ProcessorId, QueueId, SwitchId, Time};
use suimon_switch::{
    AddressView, CaptureOptions, CapturedFrame, MoveError, PlaneNotice, PortCountersView,
    ProcessorView, QueueView, Topology, TopologyError,
};

use suimon_teaming::{BUCKETS, BucketLoad, Distribution};

use crate::{FrameCapture, SwitchPlane};

#[derive(Clone, Default)]
pub(crate) struct FakePlane {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    topology: Topology,
    placements: Vec<Placement>,
    notices: VecDeque<PlaneNotice>,
    publishes_until_failure: Option<usize>,
    refuse_processors: bool,
    addresses: Vec<AddressView>,
    heard: Vec<Learned>,
    counters: BTreeMap<PortId, PortCountersView>,
    loads: BTreeMap<PortId, Box<[BucketLoad; BUCKETS]>>,
    distributions_refused: usize,
    distributions_set: usize,
    clock: Clock,
}

#[derive(Clone, Copy)]
enum Clock {
    At(Time),
    Runs(Instant),
}

impl Default for Clock {
    fn default() -> Self {
        Self::At(Time::ZERO)
    }
}

impl FakePlane {
    /// What it was told of others' hearing.
    pub(crate) fn heard(&self) -> Vec<Learned> {
        self.lock().heard.clone()
    }

    /// What every switch knows from now on.
    pub(crate) fn set_addresses(&self, addresses: Vec<AddressView>) {
        self.lock().addresses = addresses;
    }

    /// Its clock stands until it is set again.
    pub(crate) fn set_now(&self, now: Time) {
        self.lock().clock = Clock::At(now);
    }

    /// Its clock runs.
    pub(crate) fn run_clock(&self) {
        self.lock().clock = Clock::Runs(Instant::now());
    }

    pub(crate) fn set_counters(&self, port: PortId, counters: PortCountersView) {
        self.lock().counters.insert(port, counters);
    }

    /// What a team's buckets carried, when it is asked the next time.
    pub(crate) fn set_loads(&self, team: PortId, loads: Box<[BucketLoad; BUCKETS]>) {
        self.lock().loads.insert(team, loads);
    }

    /// The next distributions are refused.
    pub(crate) fn refuse_distributions(&self, number: usize) {
        self.lock().distributions_refused = number;
    }

    /// How many distributions it was given besides those of tables.
    pub(crate) fn distributions_set(&self) -> usize {
        self.lock().distributions_set
    }

    pub(crate) fn topology(&self) -> Topology {
        self.lock().topology.clone()
    }

    pub(crate) fn placements(&self) -> Vec<Placement> {
        self.lock().placements.clone()
    }

    pub(crate) fn fail_publish(&self, after: usize) {
        self.lock().publishes_until_failure = Some(after);
    }

    pub(crate) fn refuse_processors(&self, refuse: bool) {
        self.lock().refuse_processors = refuse;
    }

    pub(crate) fn tell(&self, notice: PlaneNotice) {
        self.lock().notices.push_back(notice);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SwitchPlane for FakePlane {
    fn queue_host(&self) -> Arc<dyn QueueHost> {
        Arc::new(NoQueues)
    }

    fn publish(&self, topology: Topology) -> Result<(), TopologyError> {
        let mut inner = self.lock();
        match inner.publishes_until_failure {
            Some(0) => {
                inner.publishes_until_failure = None;
                return Err(TopologyError::Stuck(1));
            }
            Some(n) => inner.publishes_until_failure = Some(n - 1),
            None => {}
        }
        inner.topology = topology;
        Ok(())
    }

    fn set_distribution(
        &self,
        team: PortId,
        distribution: &Arc<Distribution>,
    ) -> Result<(), TopologyError> {
        let mut inner = self.lock();
        if inner.distributions_refused > 0 {
            inner.distributions_refused -= 1;
            return Err(TopologyError::Stuck(1));
        }
        inner.distributions_set += 1;
        let of = inner.topology.teams.iter_mut().find(|of| of.port == team);
        of.ok_or(TopologyError::NoSuchTeam(team))?.distribution = distribution.clone();
        Ok(())
    }

    fn take_bucket_loads(&self, team: PortId) -> Option<Box<[BucketLoad; BUCKETS]>> {
        self.lock().loads.remove(&team)
    }

    fn set_processors(&self, placements: &[Placement]) -> io::Result<()> {
        let mut inner = self.lock();
        if inner.refuse_processors {
            return Err(io::Error::other("no such CPU"));
        }
        inner.placements = placements.to_vec();
        Ok(())
    }

    fn move_queue(&self, id: QueueId, _to: ProcessorId) -> Result<(), MoveError> {
        Err(MoveError::NoSuchQueue(id))
    }

    fn queues(&self) -> Vec<QueueView> {
        Vec::new()
    }

    fn processors(&self) -> Vec<ProcessorView> {
        Vec::new()
    }

    fn port_counters(&self, port: PortId) -> PortCountersView {
        self.lock().counters.get(&port).cloned().unwrap_or_default()
    }

    fn addresses(&self, _switch: SwitchId) -> Vec<AddressView> {
        self.lock().addresses.clone()
    }

    fn handle_heard(&self, heard: Vec<Learned>) {
        self.lock().heard.extend(heard);
    }

    fn capture(&self, _port: PortId, _options: CaptureOptions) -> Box<dyn FrameCapture> {
        Box::new(NoFrames)
    }

    fn now(&self) -> Time {
        match self.lock().clock {
            Clock::At(time) => time,
            Clock::Runs(since) => Time::ZERO + since.elapsed(),
        }
    }

    fn poll_notice(&self) -> Option<PlaneNotice> {
        self.lock().notices.pop_front()
    }
}

struct NoQueues;

impl QueueHost for NoQueues {
    fn attach_source(&self, _id: QueueId, _source: Box<dyn FrameSource>) {}
    fn attach_sink(&self, _id: QueueId, _sink: Box<dyn FrameSink>) {}
    fn detach(&self, _id: QueueId) {}
    fn detach_port(&self, _port: PortId) {}
}

struct NoFrames;

impl FrameCapture for NoFrames {
    fn read(
        &self,
        _timeout: Duration,
        _frames_max: usize,
        _take: &mut dyn FnMut(&CapturedFrame),
    ) -> usize {
        0
    }

    fn dropped(&self) -> u64 {
        0
    }
}
