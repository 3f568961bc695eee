//! Switching plane that only records its inputs.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use suimon_forwarding::AddressSighting;
use suimon_ports::{CpuAffinity, FrameSink, FrameSource, QueueHost};
use suimon_quantity::{PortId, QueueId, SwitchId, Time, WorkerId};
use suimon_switch::{
    AddressView, CaptureBufferLimits, CapturedFrame, MoveError, PortCountersView, QueueView,
    SwitchNotice, Topology, TopologyError, WorkerStatus,
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
    /// All published tables, oldest first.
    published: Vec<Topology>,
    placements: Vec<CpuAffinity>,
    /// Function that is called when the next notice is taken.
    happened: Option<Box<dyn FnOnce() + Send>>,
    notices: VecDeque<SwitchNotice>,
    publishes_until_failure: Option<usize>,
    refuse_workers: bool,
    addresses: Vec<AddressView>,
    refreshed: Vec<AddressSighting>,
    /// Workers by [`WorkerId`], assigned as by the real plane.
    workers: Vec<Option<WorkerStatus>>,
    queues: BTreeMap<QueueId, QueueView>,
    homes: BTreeMap<PortId, WorkerId>,
    poll_budget: Duration,
    refuse_moves: bool,
    late_moves: bool,
    counters: BTreeMap<PortId, PortCountersView>,
    loads: BTreeMap<PortId, Box<[BucketLoad; BUCKETS]>>,
    distributions_refused: usize,
    distributions_set: usize,
    clock: Clock,
}

impl Inner {
    fn has(&self, id: WorkerId) -> bool {
        self.workers.get(usize::from(id.0)).is_some_and(Option::is_some)
    }

    fn home(&self, port: PortId) -> WorkerId {
        let first = || (0..).map(WorkerId).find(|id| self.has(*id)).unwrap();
        self.homes.get(&port).copied().filter(|id| self.has(*id)).unwrap_or_else(first)
    }

    fn place(&mut self, placements: &[CpuAffinity]) {
        let mut missing = placements.to_vec();
        for slot in &mut self.workers {
            *slot = slot.take().filter(|view| {
                let placement_index =
                    missing.iter().position(|placement| *placement == view.placement);
                placement_index.map(|index| missing.remove(index)).is_some()
            });
        }
        for placement in &missing {
            let index = self.workers.iter().position(Option::is_none);
            let index = index.unwrap_or(self.workers.len());
            self.workers.resize(self.workers.len().max(index + 1), None);
            self.workers[index] = Some(worker(index, *placement));
        }
        let astray: Vec<QueueId> = self.queues.values().map(|view| view.id).collect();
        for id in astray {
            if !self.has(self.queues[&id].worker) {
                let home = self.home(id.port);
                self.queues.get_mut(&id).unwrap().worker = home;
            }
        }
    }
}

/// Returns a worker with zero counters.
fn worker(index: usize, placement: CpuAffinity) -> WorkerStatus {
    WorkerStatus {
        id: WorkerId(u16::try_from(index).unwrap()),
        placement,
        queues: 0,
        cpu_time: Duration::ZERO,
        working_ns: 0,
        stages: suimon_switch::StageTimes::default(),
        batches: 0,
        frames: 0,
        sleeps: 0,
        is_asleep: true,
        polling_pauses: 0,
        is_polling_paused: false,
    }
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
    /// Attaches a queue, as a device does.
    pub(crate) fn attach(&self, id: QueueId) {
        let mut inner = self.lock();
        let worker = inner.home(id.port);
        let view =
            QueueView { id, worker, frames: 0, bytes: 0, dropped_full: 0, moves: 0, busy_ns: 0 };
        inner.queues.insert(id, view);
    }

    /// Detaches a queue, as a device does.
    pub(crate) fn detach(&self, id: QueueId) {
        self.lock().queues.remove(&id);
    }

    /// Returns the worker that owns a queue.
    pub(crate) fn owner(&self, id: QueueId) -> u16 {
        self.lock().queues[&id].worker.0
    }

    /// Returns the number of queue moves.
    pub(crate) fn moves(&self) -> u64 {
        self.lock().queues.values().map(|view| view.moves).sum()
    }

    /// Has workers confirm moves too late.
    pub(crate) fn confirm_moves_late(&self) {
        self.lock().late_moves = true;
    }

    pub(crate) fn refuse_moves(&self, refuse: bool) {
        self.lock().refuse_moves = refuse;
    }

    /// Advances the time by `span`, in which each queue demands this much working time. Queues
    /// share their worker's time in proportion if they demand more.
    pub(crate) fn pass(&self, span: Duration, loads: &BTreeMap<QueueId, Duration>) {
        let mut inner = self.lock();
        if let Clock::At(now) = &mut inner.clock {
            *now = *now + span;
        }
        let ns = |span: Duration| u64::try_from(span.as_nanos()).unwrap();
        let Inner { workers, queues, .. } = &mut *inner;
        for worker in workers.iter_mut().flatten() {
            let mut views_here: Vec<&mut QueueView> =
                queues.values_mut().filter(|view| view.worker == worker.id).collect();
            let load_of = |view: &QueueView| loads.get(&view.id).copied().map_or(0, ns);
            let total: u64 = views_here.iter().map(|view| load_of(view)).sum();
            let granted = total.min(ns(span));
            for view in &mut views_here {
                let busy_ns = load_of(view) * granted / total.max(1);
                view.busy_ns += busy_ns;
                view.frames += busy_ns / 1000;
            }
            worker.working_ns += granted;
        }
    }

    /// Returns the addresses passed to `refresh_addresses`.
    pub(crate) fn refreshed(&self) -> Vec<AddressSighting> {
        self.lock().refreshed.clone()
    }

    /// Sets the addresses returned for each switch.
    pub(crate) fn set_addresses(&self, addresses: Vec<AddressView>) {
        self.lock().addresses = addresses;
    }

    /// Stops the clock at this time.
    pub(crate) fn set_now(&self, now: Time) {
        self.lock().clock = Clock::At(now);
    }

    /// Has the clock run.
    pub(crate) fn run_clock(&self) {
        self.lock().clock = Clock::Runs(Instant::now());
    }

    pub(crate) fn set_counters(&self, port: PortId, counters: PortCountersView) {
        self.lock().counters.insert(port, counters);
    }

    /// Sets the loads of a team's buckets that the next query returns.
    pub(crate) fn set_loads(&self, team: PortId, loads: Box<[BucketLoad; BUCKETS]>) {
        self.lock().loads.insert(team, loads);
    }

    /// Has the next `number` distributions rejected.
    pub(crate) fn refuse_distributions(&self, number: usize) {
        self.lock().distributions_refused = number;
    }

    /// Returns the number of distributions set apart from tables.
    pub(crate) fn distributions_set(&self) -> usize {
        self.lock().distributions_set
    }

    pub(crate) fn topology(&self) -> Topology {
        self.lock().topology.clone()
    }

    /// Returns all published tables, oldest first.
    pub(crate) fn published(&self) -> Vec<Topology> {
        self.lock().published.clone()
    }

    pub(crate) fn poll_budget(&self) -> Duration {
        self.lock().poll_budget
    }

    pub(crate) fn placements(&self) -> Vec<CpuAffinity> {
        self.lock().placements.clone()
    }

    pub(crate) fn fail_publish(&self, after: usize) {
        self.lock().publishes_until_failure = Some(after);
    }

    pub(crate) fn refuse_workers(&self, refuse: bool) {
        self.lock().refuse_workers = refuse;
    }

    pub(crate) fn notify(&self, notice: SwitchNotice) {
        self.lock().notices.push_back(notice);
    }

    /// Queues a notice. `happened` is called when the notice is taken: its effects precede the
    /// notice, although the node has not handled them yet.
    pub(crate) fn report_after(
        &self,
        happened: impl FnOnce() + Send + 'static,
        notice: SwitchNotice,
    ) {
        let mut inner = self.lock();
        inner.happened = Some(Box::new(happened));
        inner.notices.push_back(notice);
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
                return Err(TopologyError::Timeout(1));
            }
            Some(n) => inner.publishes_until_failure = Some(n - 1),
            None => {}
        }
        inner.published.push(topology.clone());
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
            return Err(TopologyError::Timeout(1));
        }
        inner.distributions_set += 1;
        let team_entry = inner.topology.teams.iter_mut().find(|team_entry| team_entry.port == team);
        team_entry.ok_or(TopologyError::NoSuchTeam(team))?.distribution = distribution.clone();
        Ok(())
    }

    fn take_bucket_loads(&self, team: PortId) -> Option<Box<[BucketLoad; BUCKETS]>> {
        self.lock().loads.remove(&team)
    }

    fn set_workers(&self, placements: &[CpuAffinity]) -> io::Result<()> {
        let mut inner = self.lock();
        if inner.refuse_workers {
            return Err(io::Error::other("no such CPU"));
        }
        inner.placements = placements.to_vec();
        inner.place(placements);
        Ok(())
    }

    fn move_queue(&self, id: QueueId, worker: WorkerId) -> Result<(), MoveError> {
        let mut inner = self.lock();
        if !inner.has(worker) {
            return Err(MoveError::NoSuchWorker(worker));
        }
        if inner.refuse_moves {
            return Err(MoveError::NoSuchQueue(id));
        }
        let is_late = inner.late_moves;
        let view = inner.queues.get_mut(&id).ok_or(MoveError::NoSuchQueue(id))?;
        view.moves += u64::from(view.worker != worker);
        view.worker = worker;
        if is_late { Err(MoveError::Timeout) } else { Ok(()) }
    }

    fn set_home_workers(&self, homes: BTreeMap<PortId, WorkerId>) {
        self.lock().homes = homes;
    }

    fn set_poll_budget(&self, poll_budget: Duration) {
        self.lock().poll_budget = poll_budget;
    }

    fn queues(&self) -> Vec<QueueView> {
        self.lock().queues.values().cloned().collect()
    }

    fn workers(&self) -> Vec<WorkerStatus> {
        self.lock().workers.iter().flatten().cloned().collect()
    }

    fn port_counters(&self, port: PortId) -> PortCountersView {
        self.lock().counters.get(&port).cloned().unwrap_or_default()
    }

    fn addresses(&self, _switch: SwitchId) -> Vec<AddressView> {
        self.lock().addresses.clone()
    }

    fn refresh_addresses(&self, learned: Vec<AddressSighting>) {
        self.lock().refreshed.extend(learned);
    }

    fn capture(&self, _port: PortId, _options: CaptureBufferLimits) -> Box<dyn FrameCapture> {
        Box::new(NoFrames)
    }

    fn now(&self) -> Time {
        match self.lock().clock {
            Clock::At(time) => time,
            Clock::Runs(since) => Time::ZERO + since.elapsed(),
        }
    }

    fn poll_notice(&self) -> Option<SwitchNotice> {
        let happened = self.lock().happened.take();
        if let Some(happened) = happened {
            happened();
        }
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

    fn dropped_frames(&self) -> u64 {
        0
    }
}
