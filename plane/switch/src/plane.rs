//! Handle with which the control plane controls the data plane.
//!
//! Every change is made under one lock that no worker takes. Changes wait for each other and for
//! the workers; frames never wait for a change.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use suimon_forwarding::{AddressSighting, VlanMode};
use suimon_ports::{
    CpuAffinity, DetachingQueue, FrameSink, FrameSource, NoTasks, QueueHost, ServedDevice,
    WorkerRuntime, WorkerTaskFactory,
};
use suimon_quantity::{Direction, PortId, QueueId, SwitchId, Time, WorkerId};
use suimon_teaming::{BUCKETS, BucketLoad, Distribution};

use crate::capture::{CaptureBufferLimits, CaptureReader};
use crate::latch::RESPONSE_TIMEOUT;
use crate::notice::{Notices, SwitchNotice};
use crate::owned::{OwnedSink, OwnedSource};
use crate::published::SharedPortState;
use crate::queue_record::QueueRecord;
use crate::registry::{Registry, WorkerServices};
use crate::topology::{MoveError, Topology, TopologyError};
use crate::view::{AddressView, PortCountersView, QueueView, WorkerStatus};
use crate::worker_mailbox::WorkerCommand;

/// Data plane of one host. Clones refer to the same data plane.
///
/// Workers run from [`DataPlane::start`] to [`DataPlane::stop`].
#[derive(Clone)]
pub struct DataPlane(Arc<Inner>);

struct Inner {
    parts: WorkerServices,
    registry: Mutex<Registry>,
}

impl DataPlane {
    /// Starts one idle worker at each of these placements.
    ///
    /// # Errors
    /// A CPU does not exist, is named twice or may not be used. No worker runs.
    pub fn start<P: Copy + Into<CpuAffinity>>(
        placements: &[P],
        runtime: Arc<dyn WorkerRuntime>,
    ) -> io::Result<Self> {
        Self::start_with_tasks(placements, runtime, Arc::new(NoTasks))
    }

    /// Starts workers that have a [`WorkerTask`](suimon_ports::WorkerTask) besides frames, created
    /// by `works`.
    ///
    /// # Errors
    /// As [`DataPlane::start`].
    pub fn start_with_tasks<P: Copy + Into<CpuAffinity>>(
        placements: &[P],
        runtime: Arc<dyn WorkerRuntime>,
        works: Arc<dyn WorkerTaskFactory>,
    ) -> io::Result<Self> {
        let placements: Vec<CpuAffinity> =
            placements.iter().map(|placement| (*placement).into()).collect();
        let parts = WorkerServices {
            runtime,
            tasks: works,
            notices: Notices::new(),
            polling_time: Arc::default(),
            stall_detector: Arc::default(),
        };
        let registry = Registry::start(&placements, &parts)?;
        Ok(Self(Arc::new(Inner { parts, registry: Mutex::new(registry) })))
    }

    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.0.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes all workers use this topology, and blocks until they do. Ports that are in both the
    /// old and the new topology keep their queues, counters and addresses.
    ///
    /// # Errors
    /// The topology is invalid and has no effect, or a worker did not adopt it within 10 s.
    pub fn publish(&self, topology: Topology) -> Result<(), TopologyError> {
        self.registry().set_topology(topology)
    }

    /// Sets the distribution of a team, and blocks until all workers use it. Frames received
    /// afterwards are processed by it, and no frame leaves by a member that it does not contain.
    /// The cost is one message per worker; tables and queues are not rebuilt. A later
    /// [`DataPlane::publish`] must contain the distribution too.
    ///
    /// # Errors
    /// The port is not a team, or a worker did not respond within 10 s.
    pub fn set_distribution(
        &self,
        team: PortId,
        distribution: &Arc<Distribution>,
    ) -> Result<(), TopologyError> {
        self.registry().set_distribution(team, distribution)
    }

    /// Returns the bytes that each bucket of a team's flows carried since the last call, for
    /// [`Team::handle_loads`](suimon_teaming::Team::handle_loads). The values are zero unless the
    /// algorithm is `Dynamic`. Returns `None` if the port is not a team.
    pub fn take_bucket_loads(&self, team: PortId) -> Option<Box<[BucketLoad; BUCKETS]>> {
        self.registry().take_bucket_loads(team)
    }

    /// Changes the set of workers to one at each of these placements. Workers with unchanged
    /// placement continue. Queues are moved before workers stop, without loss. Blocks until this is
    /// done.
    ///
    /// # Errors
    /// A CPU does not exist, is named twice or may not be used; the set is unchanged. Or workers do
    /// not respond, or their disks cannot be moved to workers that respond: these workers continue,
    /// and the rest of the change is made.
    pub fn set_workers<P: Copy + Into<CpuAffinity>>(&self, placements: &[P]) -> io::Result<()> {
        let placements: Vec<CpuAffinity> =
            placements.iter().map(|placement| (*placement).into()).collect();
        self.registry().set_workers(&placements, &self.0.parts)
    }

    /// Moves a queue to another worker, and blocks until that worker owns it.
    ///
    /// # Errors
    /// There is no such queue or worker, or a worker did not respond within 10 s.
    pub fn move_queue(&self, id: QueueId, to: WorkerId) -> Result<(), MoveError> {
        self.registry().move_queue(id, to)
    }

    /// Sets the workers on which new queues of these ports start. New queues of other ports, or of
    /// ports whose worker does not run, start on the worker with the fewest queues. Existing queues
    /// do not move.
    pub fn set_initial_workers(&self, initial_workers: BTreeMap<PortId, WorkerId>) {
        self.registry().initial_workers = initial_workers;
    }

    /// Sets how long workers poll their rings after the last frame before they arm notifications
    /// and sleep. Workers apply the value at their next idle check.
    pub fn set_polling_time(&self, polling_time: Duration) {
        self.0.parts.polling_time.set(polling_time);
    }

    /// Returns all queues in ascending order of their ids.
    pub fn queues(&self) -> Vec<QueueView> {
        let registry = self.registry();
        let queues = registry.queues.iter();
        queues
            .map(|(id, record)| QueueView {
                id: *id,
                worker: record.owner,
                frames: record.counters.frames.value(),
                bytes: record.counters.bytes.value(),
                dropped_full: record.counters.dropped_full.value(),
                moves: record.counters.moves.value(),
                busy_ns: record.counters.busy_ns.value(),
            })
            .collect()
    }

    /// Returns all workers in ascending order of their ids.
    pub fn workers(&self) -> Vec<WorkerStatus> {
        let registry = self.registry();
        registry.workers(self.now())
    }

    /// Returns the counters of a port; all are zero if it was never published. Frames and bytes of
    /// a team are those that its members carried while they belonged to it. Drops that concern only
    /// one member are counted at that member.
    pub fn port_counters(&self, port: PortId) -> PortCountersView {
        self.registry().port_counters(port)
    }

    /// Returns the forwarding table of a switch: configured addresses, then learned ones, each in
    /// ascending order. Blocks until the workers reply.
    pub fn addresses(&self, switch: SwitchId) -> Vec<AddressView> {
        let (mut addresses, replies) = {
            let registry = self.registry();
            let (sender, replies) = mpsc::channel();
            for link in registry.mailboxes() {
                link.send_command(WorkerCommand::ReportAddresses(sender.clone()));
            }
            (fixed_addresses(&registry.topology, switch), replies)
        };
        // Several workers may know the same address; the most recent observation is valid.
        let mut learned = BTreeMap::new();
        while let Ok(entries) = replies.recv_timeout(RESPONSE_TIMEOUT) {
            for entry in entries.into_iter().filter(|entry| entry.switch == switch) {
                let view = AddressView {
                    mac: entry.mac,
                    vlan: entry.vlan,
                    port: entry.port,
                    is_static: false,
                    age: Some(entry.age),
                };
                let youngest =
                    learned.entry((entry.mac, entry.vlan)).or_insert_with(|| view.clone());
                if view.age < youngest.age {
                    *youngest = view;
                }
            }
        }
        addresses.extend(learned.into_values());
        addresses
    }

    /// Refreshes the ages of addresses that were observed outside of the data plane, so that
    /// addresses with offloaded traffic are not removed. Observations that contradict the tables
    /// have no effect.
    pub fn refresh_addresses(&self, addresses: Vec<AddressSighting>) {
        let addresses: Arc<[AddressSighting]> = addresses.into();
        for link in self.registry().mailboxes() {
            link.send_command(WorkerCommand::RefreshAddresses(Arc::clone(&addresses)));
        }
    }

    /// Starts a capture of a port. A previous capture of the port ends. The capture ends when the
    /// returned reader is dropped.
    pub fn start_capture(&self, port: PortId, options: CaptureBufferLimits) -> CaptureReader {
        let (mut reader, tap) = CaptureReader::new(options);
        self.registry().set_capture(port, tap);
        let plane = self.clone();
        reader.set_drop_action(Box::new(move || plane.registry().remove_closed_captures()));
        reader
    }

    /// Returns the current time on the clock that stamps captured frames.
    pub fn now(&self) -> Time {
        self.0.parts.runtime.now()
    }

    /// Checks whether each worker proceeds, and reports those that have become stalled
    /// ([`SwitchNotice::WorkerStalled`]) or proceed again. Returns the duration of the longest
    /// current round and the device that its worker serves. Does not wait for changes or workers;
    /// to be called about once a second.
    pub fn check_workers(&self) -> (Duration, Option<ServedDevice>) {
        self.0.parts.stall_detector.check(self.now(), &self.0.parts.notices)
    }

    /// Returns the oldest queued notice; `None` if there is none.
    pub fn poll_notice(&self) -> Option<SwitchNotice> {
        self.0.parts.notices.poll(|queue, attachment| {
            self.registry().queues.get(&queue).is_some_and(|record| record.belongs_to(attachment))
        })
    }

    /// Stops all workers and drops all queues.
    pub fn stop(&self) {
        self.registry().stop();
        self.0.parts.tasks.handle_workers_ended();
    }

    fn attach(
        &self,
        id: QueueId,
        command: impl FnOnce(Arc<SharedPortState>, QueueRecord) -> WorkerCommand,
    ) {
        self.detach_queue(id);
        let mut registry = self.registry();
        let Some(link) = registry.initial_worker(id.port) else {
            tracing::warn!(queue = ?id, "a queue was attached after the data plane stopped");
            return;
        };
        let record = QueueRecord::new(link.id);
        let shared = registry.shared_port_state(id.port);
        registry.queues.insert(id, record.clone());
        link.send_command(command(shared, record));
        if id.direction == Direction::Egress {
            registry.republish_or_log();
        }
    }
}

fn fixed_addresses(topology: &Topology, switch: SwitchId) -> Vec<AddressView> {
    let ports = topology.ports.iter().map(|port| &port.spec);
    let mut fixed: Vec<AddressView> = ports
        .filter(|spec| spec.switch == switch)
        .filter_map(|spec| {
            let vlan = match spec.vlan {
                VlanMode::Access(vlan) => vlan,
                VlanMode::Trunk { native, .. } => native,
            };
            spec.mac.map(|mac| AddressView { mac, vlan, port: spec.id, is_static: true, age: None })
        })
        .collect();
    fixed.sort_by_key(|view| (view.mac, view.vlan));
    fixed
}

impl QueueHost for DataPlane {
    fn attach_source(&self, id: QueueId, source: Box<dyn FrameSource>) {
        self.attach(id, |shared, record| {
            WorkerCommand::AttachSource(Box::new(OwnedSource::new(id, source, shared, &record)))
        });
    }

    fn attach_sink(&self, id: QueueId, sink: Box<dyn FrameSink>) {
        self.attach(id, |shared, record| {
            WorkerCommand::AttachSink(Box::new(OwnedSink::new(id, sink, shared, &record)))
        });
    }

    fn detach(&self, id: QueueId) {
        self.detach_queue(id);
    }

    fn begin_detach(&self, id: QueueId) -> Box<dyn DetachingQueue> {
        self.begin_detach_queue(id)
    }

    fn detach_port(&self, port: PortId) {
        let ids: Vec<QueueId> = self.registry().queue_ids(port);
        for id in ids {
            self.detach_queue(id);
        }
    }
}
