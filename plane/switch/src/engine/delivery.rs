//! Delivery of one frame from the engine to a port's egress queue.

use suimon_forwarding::{DropReason, PortSlot};
use suimon_frame::{Frame, flow_hash};
use suimon_ports::PortFault;
use suimon_ports::ServedDevice;
use suimon_quantity::{Direction, QueueId};

use super::{Batch, Engine};
use crate::post::return_home;
use crate::stages::Probe;
use crate::ways::{Exit, Way};

/// Maximum number of parcels held for one queue that is being moved to this worker: the number that
/// its sender and some others may have in flight.
pub(super) const HELD_MAX: usize = 4096;

impl Engine {
    /// Delivers one frame to one port. With `is_only`, this is the frame's only destination, so its
    /// buffer may be taken.
    #[inline]
    pub(super) fn deliver(
        &mut self,
        of: &Batch<'_>,
        egress: PortSlot,
        frame: &mut Frame,
        is_only: bool,
        probe: &mut Probe<'_>,
    ) {
        match self.ways.exit(egress.index()) {
            Exit::Sink(sink) => self.transmit(sink as usize, frame, probe),
            Exit::Queues => self.deliver_to_queue(of, egress.index(), frame, is_only, probe),
            Exit::Team(team) => self.deliver_to_team(of, team as usize, frame, is_only, probe),
        }
    }

    /// Delivers one frame to a queue of the port at index `egress` of [`Published::ports`], which
    /// is not a team.
    #[inline]
    pub(super) fn deliver_to_queue(
        &mut self,
        of: &Batch<'_>,
        egress: usize,
        frame: &mut Frame,
        is_only: bool,
        probe: &mut Probe<'_>,
    ) {
        let Batch { now, published, .. } = *of;
        let Some(port) = published.ports.get(egress) else { return };
        let queues = port.egress.len();
        let at = match queues {
            0 => return port.shared.tally.drop_tx(DropReason::EgressDown, 1),
            1 => port.egress.start,
            _ => port.egress.start + flow_hash(frame) as usize % queues,
        };
        if let Some(tap) = &port.capture {
            frame.gather();
            tap.take(now, Direction::Egress, frame);
        }
        let (queue, _) = published.owners[at];
        match self.ways.of_queue(at) {
            Way::Sink(sink) => self.transmit(sink, frame, probe),
            Way::At(owner) => {
                if !self.post.add(owner, queue, frame, is_only) {
                    port.shared.tally.drop_tx(DropReason::EgressFull, 1);
                }
            }
            Way::Hold => {
                if !self.hold(queue, frame, is_only) {
                    port.shared.tally.drop_tx(DropReason::EgressFull, 1);
                }
            }
            Way::Nowhere => port.shared.tally.drop_tx(DropReason::EgressDown, 1),
        }
    }

    #[inline]
    pub(super) fn transmit(&mut self, at: usize, frame: &mut Frame, probe: &mut Probe<'_>) {
        let Some(Some(sink)) = self.sinks.get_mut(at) else { return };
        if !sink.is_touched() {
            self.touched.push(at);
        }
        self.link.pulse.serving.set(ServedDevice::Port(sink.id.port));
        if let Err(fault) = sink.transmit(frame, probe) {
            self.give_up_sink(at, fault);
        }
    }

    fn hold(&mut self, queue: QueueId, frame: &mut Frame, is_only: bool) -> bool {
        let Some(parcel) = self.post.parcel(self.link.id, queue, frame, is_only) else {
            return false;
        };
        match self.routes.hold(queue, parcel, HELD_MAX) {
            Ok(()) => true,
            Err(parcel) => {
                return_home(parcel);
                false
            }
        }
    }

    pub(super) fn give_up_sink(&mut self, at: usize, fault: PortFault) {
        if let Some(mut sink) = self.sinks.get_mut(at).and_then(Option::take) {
            self.sink_of.remove(&sink.id);
            self.ledger.close(&mut sink.cost);
            self.notices.tell_fault(sink.id, &sink.attached, fault);
            self.find_ways();
        }
    }
}
