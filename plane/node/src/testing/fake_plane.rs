//! A switching plane that only remembers what it was told.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use suimon_forwarding::Learned;
use suimon_ports::{FrameSink, FrameSource, Placement, QueueHost};
use suimon_quantity::{PortId, ProcessorId, QueueId, SwitchId, Time};
use suimon_switch::{
    AddressView, CaptureOptions, CapturedFrame, MoveError, PlaneNotice, PortCountersView,
    ProcessorView, QueueView, Topology, TopologyError,
};

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

    fn port_counters(&self, _port: PortId) -> PortCountersView {
        PortCountersView::default()
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
        Time::ZERO
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
