//! State of all workers, queues and ports in the control plane, behind one lock.

mod publication;
mod teams;
mod traffic;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use suimon_forwarding::Tables;
use suimon_ports::{CpuAffinity, Waker, WorkerRuntime, WorkerTaskFactory};
use suimon_quantity::{Direction, PortId, QueueId, Time, WorkerId};

use crate::capture::CaptureWriter;
use crate::latch::{Latch, RESPONSE_TIMEOUT};
use crate::notice::Notices;
use crate::polling_time::PollingTime;
use crate::port_record::PortRecord;
use crate::published::SharedPortState;
use crate::queue_record::QueueRecord;
use crate::stall_detector::StallDetector;
use crate::topology::{MoveError, Topology, TopologyError, WORKERS_MAX};
use crate::view::{PortCountersView, WorkerStatus};
use crate::worker::WorkerLoop;
use crate::worker_mailbox::{WorkerCommand, WorkerMailbox, WorkerMailboxes};

use self::teams::TeamRecords;

/// Services shared by all workers, with which a worker is created.
#[derive(Clone)]
pub(crate) struct WorkerServices {
    pub runtime: Arc<dyn WorkerRuntime>,
    pub tasks: Arc<dyn WorkerTaskFactory>,
    pub notices: Arc<Notices>,
    pub polling_time: Arc<PollingTime>,
    pub stall_detector: Arc<StallDetector>,
}

struct RunningWorker {
    link: Arc<WorkerMailbox>,
    join: Box<dyn FnOnce() + Send>,
}

/// Running workers, topology, queues and ports, as the control plane knows them.
pub(crate) struct Registry {
    /// Running workers by [`WorkerId`]; a stopped worker leaves its index free.
    running: Vec<Option<RunningWorker>>,
    pub topology: Topology,
    pub queues: BTreeMap<QueueId, QueueRecord>,
    /// Queues whose detachment was requested and that are not dropped yet.
    pub detaching: BTreeMap<QueueId, QueueRecord>,
    /// Forwarding tables of `topology`; `None` before they are built.
    tables: Option<Arc<Tables>>,
    ports: BTreeMap<PortId, PortRecord>,
    captures: BTreeMap<PortId, Arc<CaptureWriter>>,
    /// Workers on which new queues start, by port.
    pub initial_workers: BTreeMap<PortId, WorkerId>,
    teams: TeamRecords,
}

impl Registry {
    /// Creates the registry and starts a worker for each placement. Fails, with no worker running,
    /// if a thread cannot be started.
    pub(crate) fn start(placements: &[CpuAffinity], parts: &WorkerServices) -> io::Result<Self> {
        let mut registry = Self::without_workers();
        registry.set_workers(placements, parts)?;
        Ok(registry)
    }

    fn without_workers() -> Self {
        Self {
            running: Vec::new(),
            topology: Topology::default(),
            queues: BTreeMap::new(),
            detaching: BTreeMap::new(),
            tables: None,
            ports: BTreeMap::new(),
            captures: BTreeMap::new(),
            initial_workers: BTreeMap::new(),
            teams: TeamRecords::default(),
        }
    }

    pub(crate) fn mailboxes(&self) -> impl Iterator<Item = &Arc<WorkerMailbox>> {
        self.running.iter().flatten().map(|running| &running.link)
    }

    /// Returns the mailboxes of all workers by their ids.
    fn all_links(&self) -> WorkerMailboxes {
        let link = |worker: &RunningWorker| Arc::clone(&worker.link);
        self.running.iter().map(|running| running.as_ref().map(link)).collect()
    }

    pub(crate) fn mailbox(&self, id: WorkerId) -> Option<Arc<WorkerMailbox>> {
        let running = self.running.get(usize::from(id.0))?.as_ref()?;
        Some(Arc::clone(&running.link))
    }

    /// Returns the worker on which a new queue of a port starts: the configured one if it runs,
    /// otherwise the worker with the fewest queues; `None` if no worker runs.
    pub(crate) fn initial_worker(&self, port: PortId) -> Option<Arc<WorkerMailbox>> {
        let chosen = self.initial_workers.get(&port).and_then(|id| self.mailbox(*id));
        chosen.or_else(|| self.least_loaded(|_| true))
    }

    fn least_loaded(
        &self,
        is_wanted: impl Fn(&WorkerMailbox) -> bool,
    ) -> Option<Arc<WorkerMailbox>> {
        let owned = |id| self.queues.values().filter(|record| record.owner == id).count();
        let links = self.mailboxes().filter(|link| is_wanted(link));
        links.min_by_key(|link| (owned(link.id), link.id)).map(Arc::clone)
    }

    /// Returns the shared state of a port; creates it on first use.
    pub(crate) fn shared_port_state(&mut self, port: PortId) -> Arc<SharedPortState> {
        Arc::clone(&self.ports.entry(port).or_insert_with(|| PortRecord::new(port)).shared)
    }

    /// Returns the queues of a port, including those that are not dropped yet.
    pub(crate) fn queue_ids(&self, port: PortId) -> Vec<QueueId> {
        let ids = self.queues.keys().chain(self.detaching.keys());
        ids.filter(|id| id.port == port).copied().collect()
    }

    /// Removes the record of a detached queue that was dropped, and adds its counters to its port.
    /// No-op if that was done already.
    pub(crate) fn finish_detach(&mut self, id: QueueId, record: &QueueRecord) {
        let is_it = |queue: &QueueRecord| queue.belongs_to(&record.attachment);
        if self.detaching.get(&id).is_some_and(is_it) {
            self.detaching.remove(&id);
            self.add_detached_counters(id, record);
        }
    }

    /// Adds the counters of a detached queue to the counters of its port.
    pub(crate) fn add_detached_counters(&mut self, id: QueueId, record: &QueueRecord) {
        if let Some(port) = self.ports.get_mut(&id.port) {
            port.add_detached_traffic(id.direction, &record.counters);
        }
    }

    pub(crate) fn set_topology(&mut self, topology: Topology) -> Result<(), TopologyError> {
        topology.check_teams()?;
        let joining = self.member_traffic_counters(&topology);
        let before = std::mem::replace(&mut self.topology, topology);
        let tables_before = self.tables.take();
        if let Err(error) = self.republish() {
            self.topology = before;
            self.tables = tables_before;
            return Err(error);
        }
        self.update_member_counting(&joining);
        // Counters of a port are kept as long as the port or one of its queues exists.
        let topology = &self.topology;
        let (queues, detaching) = (&self.queues, &self.detaching);
        self.ports.retain(|id, _| {
            topology.ports.iter().any(|port| port.spec.id == *id)
                || topology.members().any(|member| member.port == *id)
                || queues.keys().chain(detaching.keys()).any(|queue| queue.port == *id)
        });
        Ok(())
    }

    /// Publishes the current state and blocks until all workers use it.
    ///
    /// # Errors
    /// The topology is invalid, or a worker did not adopt the tables within [`RESPONSE_TIMEOUT`].
    pub(crate) fn republish(&mut self) -> Result<(), TopologyError> {
        let published = Arc::new(self.build_tables()?);
        let links = Arc::new(self.all_links());
        let latch = Latch::new(links.iter().count());
        for link in links.iter() {
            let (published, links) = (Arc::clone(&published), Arc::clone(&links));
            link.send_command(WorkerCommand::AdoptTables(published, links, latch.clone()));
        }
        if links.iter().next().is_some() && !latch.wait(RESPONSE_TIMEOUT) {
            return Err(TopologyError::Timeout(RESPONSE_TIMEOUT.as_secs()));
        }
        Ok(())
    }

    /// Publishes a change of queues for a topology that was accepted before. Logs errors instead of
    /// returning them.
    pub(crate) fn republish_or_log(&mut self) {
        if let Err(error) = self.republish() {
            tracing::error!(%error, "cannot publish the forwarding tables");
        }
    }

    pub(crate) fn set_capture(&mut self, port: PortId, tap: Arc<CaptureWriter>) {
        self.captures.insert(port, tap);
        self.republish_or_log();
    }

    pub(crate) fn remove_closed_captures(&mut self) {
        self.captures.retain(|_, tap| !tap.is_closed());
        self.republish_or_log();
    }

    pub(crate) fn move_queue(&mut self, id: QueueId, to: WorkerId) -> Result<(), MoveError> {
        let target = self.mailbox(to).ok_or(MoveError::NoSuchWorker(to))?;
        let record = self.queues.get_mut(&id).ok_or(MoveError::NoSuchQueue(id))?;
        let from = record.owner;
        if from == to {
            return Ok(());
        }
        record.owner = to;
        let latch = Latch::new(1);
        match id.direction {
            Direction::Ingress => {
                if let Some(link) = self.mailbox(from) {
                    link.send_command(WorkerCommand::MoveSource(id, to, latch.clone()));
                }
            }
            Direction::Egress => {
                target.send_command(WorkerCommand::CountDownOnSink(id, latch.clone()));
                self.republish_or_log();
            }
        }
        if latch.wait(RESPONSE_TIMEOUT) { Ok(()) } else { Err(MoveError::Timeout) }
    }

    pub(crate) fn set_workers(
        &mut self,
        placements: &[CpuAffinity],
        parts: &WorkerServices,
    ) -> io::Result<()> {
        check_placements(placements)?;
        let started = self.start_missing(placements, parts)?;
        if started > 0 {
            self.republish_or_log();
        }
        let surplus = self.surplus(placements);
        let kept =
            if surplus.is_empty() { Vec::new() } else { parts.tasks.retire_workers(&surplus) };
        let retiring: Vec<WorkerId> =
            surplus.iter().copied().filter(|id| !kept.contains(id)).collect();
        for id in &retiring {
            // Queues are not moved to workers that were to end and are blocked, either.
            self.empty_worker(*id, &surplus);
        }
        let mut stopped = Vec::new();
        for id in retiring {
            stopped.extend(self.running[usize::from(id.0)].take());
        }
        if !stopped.is_empty() {
            // The other workers stop sending to them before they stop.
            self.republish_or_log();
        }
        stop_all(stopped);
        if kept.is_empty() { Ok(()) } else { Err(not_stopped(&kept)) }
    }

    /// Returns the running workers that have no matching placement and must end. Of several at one
    /// placement, those started last are returned.
    fn surplus(&self, placements: &[CpuAffinity]) -> Vec<WorkerId> {
        let mut requested = placements.to_vec();
        let surplus = self.mailboxes().filter(|link| {
            let index = requested.iter().position(|placement| *placement == link.placement);
            index.map(|index| requested.swap_remove(index)).is_none()
        });
        surplus.map(|link| link.id).collect()
    }

    /// Starts workers for the placements that have none, all or nothing. Returns the number of
    /// workers started.
    fn start_missing(
        &mut self,
        placements: &[CpuAffinity],
        parts: &WorkerServices,
    ) -> io::Result<usize> {
        let mut started = Vec::new();
        let mut running: Vec<CpuAffinity> = self.mailboxes().map(|link| link.placement).collect();
        for placement in placements {
            if let Some(index) = running.iter().position(|running| running == placement) {
                running.swap_remove(index);
                continue;
            }
            let index = self.running.iter().position(Option::is_none).unwrap_or(self.running.len());
            match self.start_one(WorkerId(index as u16), *placement, parts) {
                Ok(worker) => {
                    if index == self.running.len() {
                        self.running.push(None);
                    }
                    self.running[index] = Some(worker);
                    started.push(index);
                }
                Err(error) => {
                    let ids: Vec<WorkerId> =
                        started.iter().chain([&index]).map(|slot| WorkerId(*slot as u16)).collect();
                    stop_all(
                        started.iter().filter_map(|slot| self.running[*slot].take()).collect(),
                    );
                    // Their tasks have ended; no disk may be moved to them.
                    let _ = parts.tasks.retire_workers(&ids);
                    return Err(error);
                }
            }
        }
        Ok(started.len())
    }

    fn start_one(
        &mut self,
        id: WorkerId,
        placement: CpuAffinity,
        parts: &WorkerServices,
    ) -> io::Result<RunningWorker> {
        let link = Arc::new(WorkerMailbox::new(id, placement));
        let published = Arc::new(self.build_tables().map_err(io::Error::other)?);
        let links = Arc::new(self.all_links());
        let mut work = parts.tasks.create(id, Arc::clone(&link) as Arc<dyn Waker>);
        work.set_serving(Arc::clone(&link.round_progress.served_device));
        parts.stall_detector.add(&link);
        let body = {
            let (link, notices) = (Arc::clone(&link), Arc::clone(&parts.notices));
            let polling_time = Arc::clone(&parts.polling_time);
            Box::new(move |wait| {
                WorkerLoop::new(link, wait, (published, links), notices, work, polling_time).run();
            })
        };
        let (waker, join) = parts.runtime.start(&format!("processor-{id}"), placement, body)?;
        link.set_waker(waker);
        Ok(RunningWorker { link, join })
    }

    /// Moves all queues of worker `id` to workers that are not in `retiring`.
    fn empty_worker(&mut self, id: WorkerId, retiring: &[WorkerId]) {
        let owned: Vec<QueueId> = self
            .queues
            .iter()
            .filter(|(_, record)| record.owner == id)
            .map(|(queue, _)| *queue)
            .collect();
        for queue in owned {
            let Some(target) = self.least_loaded(|link| !retiring.contains(&link.id)) else {
                return;
            };
            if let Err(error) = self.move_queue(queue, target.id) {
                tracing::error!(?queue, %error, "cannot move a queue off its worker");
            }
        }
    }

    pub(crate) fn stop(&mut self) {
        stop_all(std::mem::take(&mut self.running).into_iter().flatten().collect());
        let queues = std::mem::take(&mut self.queues);
        for (id, record) in queues.into_iter().chain(std::mem::take(&mut self.detaching)) {
            self.add_detached_counters(id, &record);
        }
    }

    /// Returns the status of all workers in ascending order. `now`: current time of the workers'
    /// clock.
    pub(crate) fn workers(&self, now: Time) -> Vec<WorkerStatus> {
        let views = self.mailboxes().map(|link| {
            let (stages, asleep) = link.counters.stages.read(now);
            WorkerStatus {
                id: link.id,
                placement: link.placement,
                queues: link.counters.queues.load(Relaxed),
                working_ns: link.counters.working_ns.value(),
                cpu_time: Duration::from_nanos(link.counters.cpu_time_ns.load(Relaxed)),
                stages,
                batches: link.counters.batches.value(),
                frames: link.counters.frames.value(),
                sleeps: link.counters.sleeps.value(),
                is_asleep: asleep,
                polling_pauses: link.counters.polling_pauses.value(),
                is_polling_paused: link.counters.is_polling_paused(now),
            }
        });
        views.collect()
    }

    pub(crate) fn port_counters(&self, port: PortId) -> PortCountersView {
        let Some(record) = self.ports.get(&port) else { return PortCountersView::default() };
        record.counters_with_traffic(
            self.port_traffic_counters(port) + self.team_traffic_counters(port),
        )
    }
}

fn not_stopped(workers: &[WorkerId]) -> io::Error {
    let ids: Vec<String> = workers.iter().map(ToString::to_string).collect();
    let text = format!(
        "these workers do not respond, or their disks cannot be moved to workers that respond: {}. \
         They continue; repeat the change when all workers proceed (event 5007)",
        ids.join(", ")
    );
    io::Error::new(io::ErrorKind::TimedOut, text)
}

fn stop_all(workers: Vec<RunningWorker>) {
    for worker in &workers {
        worker.link.send_command(WorkerCommand::Stop);
    }
    for worker in workers {
        (worker.join)();
    }
}

fn check_placements(placements: &[CpuAffinity]) -> io::Result<()> {
    let refuse = |text: String| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    if placements.is_empty() || placements.len() > WORKERS_MAX {
        return refuse(format!("set 1 to {WORKERS_MAX} CPUs for the data plane"));
    }
    let is_duplicate = |(index, placement): &(usize, &CpuAffinity)| {
        placement.cpu().is_some() && placements[..*index].contains(placement)
    };
    match placements.iter().enumerate().find(is_duplicate) {
        Some((_, placement)) => refuse(format!("{placement} is listed twice; list it once")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
