//! The control plane's handle on the data plane.
//!
//! Every change is made under one lock, which no processor ever takes: changes
//! wait for each other and for the processors, frames never wait for a change.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use suimon_forwarding::{Learned, VlanMode};
use suimon_ports::{
    FrameSink, FrameSource, NoOtherWork, Placement, ProcessorRuntime, ProcessorWorks, QueueHost,
};
use suimon_quantity::{Direction, PortId, ProcessorId, QueueId, SwitchId, Time};
use suimon_teaming::{BUCKETS, BucketLoad, Distribution};

use crate::capture::{CaptureOptions, CaptureReader};
use crate::link::{Command, Latch};
use crate::notice::{Notices, PlaneNotice};
use crate::owned::{OwnedSink, OwnedSource};
use crate::registry::{ProcessorParts, QueueRecord, Registry};
use crate::topology::{MoveError, Topology, TopologyError};
use crate::view::{AddressView, PortCountersView, ProcessorView, QueueView};

/// How long a processor may take to answer. It answers between two batches, so
/// this is reached only if the host does not let it run at all.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The data plane of one host. Clones are handles on the same.
///
/// Processors run from [`DataPlane::start`] to [`DataPlane::stop`].
#[derive(Clone)]
pub struct DataPlane(Arc<Inner>);

struct Inner {
    parts: ProcessorParts,
    registry: Mutex<Registry>,
}

impl DataPlane {
    /// Starts one processor at each of these places, with nothing to do.
    ///
    /// # Errors
    /// A CPU does not exist, is named twice or may not be used. Nothing runs.
    pub fn start<P: Copy + Into<Placement>>(
        placements: &[P],
        runtime: Arc<dyn ProcessorRuntime>,
    ) -> io::Result<Self> {
        Self::start_with(placements, runtime, Arc::new(NoOtherWork))
    }

    /// The same, with processors that have other work as well.
    ///
    /// # Errors
    /// As [`DataPlane::start`].
    pub fn start_with<P: Copy + Into<Placement>>(
        placements: &[P],
        runtime: Arc<dyn ProcessorRuntime>,
        works: Arc<dyn ProcessorWorks>,
    ) -> io::Result<Self> {
        let placements: Vec<Placement> = placements.iter().map(|of| (*of).into()).collect();
        let parts =
            ProcessorParts { runtime, works, notices: Notices::new(), patience: Arc::default() };
        let registry = Registry::start(&placements, &parts)?;
        Ok(Self(Arc::new(Inner { parts, registry: Mutex::new(registry) })))
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.0.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes all processors use this topology; returns when they do. Ports that
    /// are in the old and the new one keep their queues, counters and addresses.
    ///
    /// # Errors
    /// It makes no sense, or a processor does not answer.
    pub fn publish(&self, topology: Topology) -> Result<(), TopologyError> {
        self.registry().set_topology(topology)
    }

    /// Gives a team another distribution; returns when all processors use it: a frame
    /// that a device hands over afterwards goes by it, and none goes by a member that
    /// it does not name. Costs what a message to each processor does, and takes no
    /// tables or queues apart. A later [`DataPlane::publish`] is to have it too.
    ///
    /// # Errors
    /// The port is no team, or a processor does not answer.
    pub fn set_distribution(
        &self,
        team: PortId,
        distribution: &Arc<Distribution>,
    ) -> Result<(), TopologyError> {
        self.registry().set_distribution(team, distribution)
    }

    /// What each bucket of a team's flows carried since this was last asked, for
    /// [`Team::handle_loads`](suimon_teaming::Team::handle_loads); nothing in bytes
    /// unless the algorithm is `Dynamic`. `None` if the port is no team.
    pub fn take_bucket_loads(&self, team: PortId) -> Option<Box<[BucketLoad; BUCKETS]>> {
        self.registry().take_bucket_loads(team)
    }

    /// Has one processor at each of these places, and none elsewhere: what runs where it
    /// may stays. Queues move first; nothing is lost.
    ///
    /// # Errors
    /// A CPU does not exist, is named twice or may not be used. Nothing changed.
    pub fn set_processors<P: Copy + Into<Placement>>(&self, placements: &[P]) -> io::Result<()> {
        let placements: Vec<Placement> = placements.iter().map(|of| (*of).into()).collect();
        self.registry().set_processors(&placements, &self.0.parts)
    }

    /// Hands a queue over to another processor; returns when that owns it.
    ///
    /// # Errors
    /// There is no such queue or processor, or one does not answer.
    pub fn move_queue(&self, id: QueueId, to: ProcessorId) -> Result<(), MoveError> {
        self.registry().move_queue(id, to)
    }

    /// From now on new queues of these ports start at these processors, those of others,
    /// and of processors that do not run, at the one with the fewest queues.
    pub fn set_homes(&self, homes: BTreeMap<PortId, ProcessorId>) {
        self.registry().homes = homes;
    }

    /// From now on processors poll their rings so long after the last frame before they
    /// arm notifications and sleep; those that poll now notice when they next look.
    pub fn set_patience(&self, patience: Duration) {
        self.0.parts.patience.set(patience);
    }

    /// All queues, ascending.
    pub fn queues(&self) -> Vec<QueueView> {
        let registry = self.registry();
        let queues = registry.queues.iter();
        queues
            .map(|(id, record)| QueueView {
                id: *id,
                processor: record.owner,
                frames: record.tally.frames.value(),
                bytes: record.tally.bytes.value(),
                full: record.tally.full.value(),
                moves: record.tally.moves.value(),
                busy_ns: record.tally.busy_ns.value(),
            })
            .collect()
    }

    /// All processors, ascending.
    pub fn processors(&self) -> Vec<ProcessorView> {
        let registry = self.registry();
        registry.processors(self.now())
    }

    /// Counters of a port; all nought if it was never published. Frames and bytes of a
    /// team are those that its members carried while they were in it; what became of
    /// frames that only one member had to do with is counted there.
    pub fn port_counters(&self, port: PortId) -> PortCountersView {
        self.registry().port_counters(port)
    }

    /// The forwarding table of a switch: what is configured, then what was
    /// learned, each ascending by address.
    pub fn addresses(&self, switch: SwitchId) -> Vec<AddressView> {
        let (mut addresses, replies) = {
            let registry = self.registry();
            let (sender, replies) = mpsc::channel();
            for link in registry.links() {
                link.command(Command::Addresses(sender.clone()));
            }
            (fixed_addresses(&registry.topology, switch), replies)
        };
        // The same address may be known to several processors, of which the one
        // that saw it last is right.
        let mut learned = BTreeMap::new();
        while let Ok(entries) = replies.recv_timeout(ANSWER_TIMEOUT) {
            for entry in entries.into_iter().filter(|entry| entry.switch == switch) {
                let view = AddressView {
                    mac: entry.mac,
                    vlan: entry.vlan,
                    port: entry.port,
                    fixed: false,
                    age: Some(entry.age),
                };
                let known = learned.entry((entry.mac, entry.vlan)).or_insert_with(|| view.clone());
                if view.age < known.age {
                    *known = view;
                }
            }
        }
        addresses.extend(learned.into_values());
        addresses
    }

    /// Takes in who was heard of elsewhere, so that addresses whose frames pass by the
    /// plane do not age. What is not as the tables have it changes nothing.
    pub fn handle_heard(&self, heard: Vec<Learned>) {
        let heard: Arc<[Learned]> = heard.into();
        for link in self.registry().links() {
            link.command(Command::Heard(Arc::clone(&heard)));
        }
    }

    /// Begins to capture what passes a port. A former capture of the port ends.
    pub fn capture(&self, port: PortId, options: CaptureOptions) -> CaptureReader {
        let (mut reader, tap) = CaptureReader::new(options);
        self.registry().set_capture(port, tap);
        let plane = self.clone();
        reader.on_drop(Box::new(move || plane.registry().forget_closed_captures()));
        reader
    }

    /// Now, on the clock that stamps captured frames.
    pub fn now(&self) -> Time {
        self.0.parts.runtime.now()
    }

    /// The next notice, oldest first.
    pub fn poll_notice(&self) -> Option<PlaneNotice> {
        self.0.parts.notices.poll()
    }

    /// Stops all processors and drops all queues.
    pub fn stop(&self) {
        self.registry().stop();
        self.0.parts.works.end();
    }

    fn attach(
        &self,
        id: QueueId,
        command: impl FnOnce(Arc<crate::published::PortShared>, QueueRecord) -> Command,
    ) {
        self.detach(id);
        let mut registry = self.registry();
        let Some(link) = registry.home(id.port) else {
            tracing::warn!(queue = ?id, "a queue came after the data plane stopped");
            return;
        };
        let record = QueueRecord::new(link.id);
        let shared = registry.shared(id.port);
        registry.queues.insert(id, record.clone());
        link.command(command(shared, record));
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
            spec.mac.map(|mac| AddressView { mac, vlan, port: spec.id, fixed: true, age: None })
        })
        .collect();
    fixed.sort_by_key(|view| (view.mac, view.vlan));
    fixed
}

impl QueueHost for DataPlane {
    fn attach_source(&self, id: QueueId, source: Box<dyn FrameSource>) {
        self.attach(id, |shared, record| {
            Command::AttachSource(Box::new(OwnedSource::new(id, source, shared, record.tally)))
        });
    }

    fn attach_sink(&self, id: QueueId, sink: Box<dyn FrameSink>) {
        self.attach(id, |shared, record| {
            Command::AttachSink(Box::new(OwnedSink::new(id, sink, shared, record.tally)))
        });
    }

    fn detach(&self, id: QueueId) {
        let mut registry = self.registry();
        let Some(record) = registry.queues.remove(&id) else { return };
        if id.direction == Direction::Egress {
            // First nobody sends to it, then it goes.
            registry.republish_or_log();
        }
        if let Some(link) = registry.link(record.owner) {
            let latch = Latch::new(1);
            link.command(Command::Detach(id, latch.clone()));
            if !latch.wait(ANSWER_TIMEOUT) {
                tracing::error!(queue = ?id, "its processor does not give the queue back");
            }
        }
        registry.retire(id, &record);
    }

    fn detach_port(&self, port: PortId) {
        let ids: Vec<QueueId> =
            self.registry().queues.keys().filter(|id| id.port == port).copied().collect();
        for id in ids {
            self.detach(id);
        }
    }
}
