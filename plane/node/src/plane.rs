//! The switching plane, as the node sees it.
//!
//! A trait, so that failures of the plane can be tested; [`DataPlane`] is the
//! implementation.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use suimon_contract::HostSection;
use suimon_forwarding::Learned;
use suimon_ports::{Placement, QueueHost};
use suimon_quantity::{PortId, ProcessorId, QueueId, SwitchId, Time};
use suimon_switch::{
    AddressView, CaptureOptions, CaptureReader, CapturedFrame, DataPlane, MoveError, PlaneNotice,
    PortCountersView, ProcessorView, QueueView, Topology, TopologyError,
};
use suimon_teaming::{BUCKETS, BucketLoad, Distribution};

/// What the node asks of the switching plane. See [`DataPlane`] for the meaning
/// of each.
pub trait SwitchPlane: Send + Sync {
    /// The plane as a taker of queues.
    fn queue_host(&self) -> Arc<dyn QueueHost>;

    /// Replaces the tables on all processors.
    ///
    /// # Errors
    /// The tables contradict themselves; nothing was changed.
    fn publish(&self, topology: Topology) -> Result<(), TopologyError>;

    /// Gives a team another distribution.
    ///
    /// # Errors
    /// The port is no team, or a processor does not answer.
    fn set_distribution(
        &self,
        team: PortId,
        distribution: &Arc<Distribution>,
    ) -> Result<(), TopologyError>;

    /// What each bucket of a team's flows carried since this was last asked; `None` if
    /// the port is no team.
    fn take_bucket_loads(&self, team: PortId) -> Option<Box<[BucketLoad; BUCKETS]>>;

    /// Has one processor at each of these.
    ///
    /// # Errors
    /// A CPU may not be used; the processors are as before.
    fn set_processors(&self, placements: &[Placement]) -> io::Result<()>;

    /// Hands a queue over.
    ///
    /// # Errors
    /// No such queue or processor.
    fn move_queue(&self, id: QueueId, to: ProcessorId) -> Result<(), MoveError>;

    /// Says where new queues of these ports start.
    fn set_homes(&self, homes: BTreeMap<PortId, ProcessorId>);

    /// Says how long processors poll before they sleep.
    fn set_patience(&self, patience: Duration);

    /// All queues.
    fn queues(&self) -> Vec<QueueView>;

    /// All processors.
    fn processors(&self) -> Vec<ProcessorView>;

    /// Counters of one port.
    fn port_counters(&self, port: PortId) -> PortCountersView;

    /// The forwarding table of one switch.
    fn addresses(&self, switch: SwitchId) -> Vec<AddressView>;

    /// Takes in who was heard of elsewhere than in the plane.
    fn handle_heard(&self, heard: Vec<Learned>);

    /// Copies what passes one port.
    fn capture(&self, port: PortId, options: CaptureOptions) -> Box<dyn FrameCapture>;

    /// Now, on the clock that stamps captured frames.
    fn now(&self) -> Time;

    /// The next of what the plane has to report.
    fn poll_notice(&self) -> Option<PlaneNotice>;
}

/// Copies of frames. Dropping it ends the capture.
pub trait FrameCapture: Send {
    /// Waits up to `timeout` for the first frame, then hands over those there
    /// are, `frames_max` at most. Returns how many.
    fn read(
        &self,
        timeout: Duration,
        frames_max: usize,
        take: &mut dyn FnMut(&CapturedFrame),
    ) -> usize;

    /// Frames that passed while there was no room to copy them.
    fn dropped(&self) -> u64;
}

impl FrameCapture for CaptureReader {
    fn read(
        &self,
        timeout: Duration,
        frames_max: usize,
        take: &mut dyn FnMut(&CapturedFrame),
    ) -> usize {
        Self::read(self, timeout, frames_max, take)
    }

    fn dropped(&self) -> u64 {
        Self::dropped(self)
    }
}

impl SwitchPlane for DataPlane {
    fn queue_host(&self) -> Arc<dyn QueueHost> {
        Arc::new(self.clone())
    }

    fn publish(&self, topology: Topology) -> Result<(), TopologyError> {
        Self::publish(self, topology)
    }

    fn set_distribution(
        &self,
        team: PortId,
        distribution: &Arc<Distribution>,
    ) -> Result<(), TopologyError> {
        Self::set_distribution(self, team, distribution)
    }

    fn take_bucket_loads(&self, team: PortId) -> Option<Box<[BucketLoad; BUCKETS]>> {
        Self::take_bucket_loads(self, team)
    }

    fn set_processors(&self, placements: &[Placement]) -> io::Result<()> {
        Self::set_processors(self, placements)
    }

    fn move_queue(&self, id: QueueId, to: ProcessorId) -> Result<(), MoveError> {
        Self::move_queue(self, id, to)
    }

    fn set_homes(&self, homes: BTreeMap<PortId, ProcessorId>) {
        Self::set_homes(self, homes);
    }

    fn set_patience(&self, patience: Duration) {
        Self::set_patience(self, patience);
    }

    fn queues(&self) -> Vec<QueueView> {
        Self::queues(self)
    }

    fn processors(&self) -> Vec<ProcessorView> {
        Self::processors(self)
    }

    fn port_counters(&self, port: PortId) -> PortCountersView {
        Self::port_counters(self, port)
    }

    fn addresses(&self, switch: SwitchId) -> Vec<AddressView> {
        Self::addresses(self, switch)
    }

    fn handle_heard(&self, heard: Vec<Learned>) {
        Self::handle_heard(self, heard);
    }

    fn capture(&self, port: PortId, options: CaptureOptions) -> Box<dyn FrameCapture> {
        Box::new(Self::capture(self, port, options))
    }

    fn now(&self) -> Time {
        Self::now(self)
    }

    fn poll_notice(&self) -> Option<PlaneNotice> {
        Self::poll_notice(self)
    }
}

/// Where the processors of a host run: pinned to the CPUs that its configuration gives
/// them, or as many that are not pinned as it asks for.
pub fn placements(host: &HostSection) -> Vec<Placement> {
    match &host.processors {
        Some(cpus) => cpus.iter().copied().map(Placement::Pinned).collect(),
        None => vec![Placement::Floating; host.processor_count()],
    }
}
