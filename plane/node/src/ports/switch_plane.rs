//! Interface of the node to the switching plane.
//!
//! A trait, so that tests can inject failures of the plane. [`DataPlane`] is the implementation.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use suimon_contract::HostSection;
use suimon_forwarding::AddressSighting;
use suimon_ports::{CpuAffinity, QueueHost};
use suimon_quantity::{PortId, QueueId, SwitchId, Time, WorkerId};
use suimon_switch::{
    AddressView, CaptureBufferLimits, CaptureReader, CapturedFrame, DataPlane, MoveError,
    PortCountersView, QueueView, SwitchNotice, Topology, TopologyError, WorkerStatus,
};
use suimon_teaming::{BUCKETS, BucketLoad, Distribution};

/// Operations of the switching plane that the node uses. [`DataPlane`] documents each of them in
/// detail.
pub trait SwitchPlane: Send + Sync {
    /// Returns the handle through which devices attach their queues to workers.
    fn queue_host(&self) -> Arc<dyn QueueHost>;

    /// Replaces the forwarding tables on all workers.
    ///
    /// # Errors
    /// The tables are inconsistent; nothing was changed.
    fn publish(&self, topology: Topology) -> Result<(), TopologyError>;

    /// Replaces the distribution of a team.
    ///
    /// # Errors
    /// The port is not a team, or a worker does not respond.
    fn set_distribution(
        &self,
        team: PortId,
        distribution: &Arc<Distribution>,
    ) -> Result<(), TopologyError>;

    /// Returns the load of each flow bucket of a team since the previous call; `None` if the port
    /// is not a team.
    fn take_bucket_loads(&self, team: PortId) -> Option<Box<[BucketLoad; BUCKETS]>>;

    /// Starts and stops workers so that one runs at each of `placements`.
    ///
    /// # Errors
    /// A CPU cannot be used; the workers are unchanged. Or workers that do not respond continue
    /// beside those at `placements`.
    fn set_workers(&self, placements: &[CpuAffinity]) -> io::Result<()>;

    /// Moves a queue to another worker.
    ///
    /// # Errors
    /// The queue or the worker does not exist, or a worker does not respond.
    fn move_queue(&self, id: QueueId, to: WorkerId) -> Result<(), MoveError>;

    /// Sets the worker on which new queues of each port start.
    fn set_home_workers(&self, homes: BTreeMap<PortId, WorkerId>);

    /// Sets the poll budget: the time for which workers poll before they sleep.
    fn set_poll_budget(&self, poll_budget: Duration);

    /// Returns the status of every queue, in ascending order.
    fn queues(&self) -> Vec<QueueView>;

    /// Returns the status of every worker, in ascending order.
    fn workers(&self) -> Vec<WorkerStatus>;

    /// Returns the counters of a port.
    fn port_counters(&self, port: PortId) -> PortCountersView;

    /// Returns the forwarding table (MAC address table) of a switch.
    fn addresses(&self, switch: SwitchId) -> Vec<AddressView>;

    /// Refreshes addresses of frames that bypassed the plane (kernel path).
    fn refresh_addresses(&self, learned: Vec<AddressSighting>);

    /// Starts to copy the frames that pass a port.
    fn capture(&self, port: PortId, options: CaptureBufferLimits) -> Box<dyn FrameCapture>;

    /// Returns the current time of the clock that stamps captured frames.
    fn now(&self) -> Time;

    /// Removes and returns the next pending notice of the plane.
    fn poll_notice(&self) -> Option<SwitchNotice>;
}

/// Reader of captured frames. Dropping the reader ends the capture.
pub trait FrameCapture: Send {
    /// Waits up to `timeout` for a frame, then passes up to `frames_max` available frames to
    /// `handle_frame`. Returns their number.
    fn read(
        &self,
        timeout: Duration,
        frames_max: usize,
        handle_frame: &mut dyn FnMut(&CapturedFrame),
    ) -> usize;

    /// Returns the number of frames that were not copied because the buffer was full.
    fn dropped_frames(&self) -> u64;
}

impl FrameCapture for CaptureReader {
    fn read(
        &self,
        timeout: Duration,
        frames_max: usize,
        handle_frame: &mut dyn FnMut(&CapturedFrame),
    ) -> usize {
        Self::read(self, timeout, frames_max, handle_frame)
    }

    fn dropped_frames(&self) -> u64 {
        Self::dropped_frames(self)
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

    fn set_workers(&self, placements: &[CpuAffinity]) -> io::Result<()> {
        Self::set_workers(self, placements)
    }

    fn move_queue(&self, id: QueueId, to: WorkerId) -> Result<(), MoveError> {
        Self::move_queue(self, id, to)
    }

    fn set_home_workers(&self, homes: BTreeMap<PortId, WorkerId>) {
        Self::set_initial_workers(self, homes);
    }

    fn set_poll_budget(&self, poll_budget: Duration) {
        Self::set_polling_time(self, poll_budget);
    }

    fn queues(&self) -> Vec<QueueView> {
        Self::queues(self)
    }

    fn workers(&self) -> Vec<WorkerStatus> {
        Self::workers(self)
    }

    fn port_counters(&self, port: PortId) -> PortCountersView {
        Self::port_counters(self, port)
    }

    fn addresses(&self, switch: SwitchId) -> Vec<AddressView> {
        Self::addresses(self, switch)
    }

    fn refresh_addresses(&self, learned: Vec<AddressSighting>) {
        Self::refresh_addresses(self, learned);
    }

    fn capture(&self, port: PortId, options: CaptureBufferLimits) -> Box<dyn FrameCapture> {
        Box::new(Self::start_capture(self, port, options))
    }

    fn now(&self) -> Time {
        Self::now(self)
    }

    fn poll_notice(&self) -> Option<SwitchNotice> {
        Self::poll_notice(self)
    }
}

/// Returns one placement per worker of a host: pinned to each configured CPU, or the configured
/// number of workers without a fixed CPU.
pub fn placements(host: &HostSection) -> Vec<CpuAffinity> {
    match &host.worker_cpus {
        Some(cpus) => cpus.iter().copied().map(CpuAffinity::Pinned).collect(),
        None => vec![CpuAffinity::Floating; host.worker_count()],
    }
}
