//! Which processor works off which queue: `policy/vmq`, asked as `plane/node` asks it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use suimon_quantity::{Direction, PortId, ProcessorId, QueueId, Time};
use suimon_vmq::{Measurements, Move, NicSpec, Processor, ProcessorBusy, QueueBusy, Vmq, VmqSpec};

use crate::kernel::SECOND;

/// How often it is measured what queues and processors cost.
pub(crate) const PERIOD_NS: u64 = SECOND / 4;

/// What was measured of a period, in ns: by VM, whose queue it is, and by processor.
pub(crate) struct Busy {
    pub(crate) queues: Vec<u64>,
    pub(crate) processors: Vec<u64>,
}

/// VMs whose queues are to be handed over, and to which processor.
pub(crate) type Moves = Vec<(u32, u16)>;

/// One queue for each VM.
pub(crate) struct Placement {
    vmq: Vmq,
    /// Queues on their way to another processor.
    pub(crate) moving: u16,
}

impl Placement {
    /// Every VM has its queue. Returns where each begins, and what is to be moved at once.
    ///
    /// # Errors
    /// What the policy refuses.
    pub(crate) fn new(
        spec: VmqSpec,
        processors: &[Processor],
        vms: u32,
    ) -> Result<(Self, Vec<u16>, Moves)> {
        let vmq = Vmq::new(spec, processors, Time::ZERO)?;
        let mut placement = Self { vmq, moving: 0 };
        let (mut owners, mut moves) = (BTreeMap::new(), Vec::new());
        for vm in 0..vms {
            let now = Time::ZERO;
            let of_nic = placement.vmq.set_nic(PortId(vm), NicSpec::default(), 1, now)?;
            moves.extend(placement.order(&of_nic));
            let added = placement.vmq.add_queue(queue(vm), now)?;
            owners.insert(vm, added.at.0);
            moves.extend(placement.order(&added.moves));
        }
        Ok((placement, owners.into_values().collect(), moves))
    }

    /// What was measured in a period; returns what is to be handed over.
    pub(crate) fn observe(&mut self, busy: Busy, now: Time) -> Moves {
        let queues = (0..).zip(busy.queues);
        let processors = (0..).zip(busy.processors);
        let measurements = Measurements {
            period: Duration::from_nanos(PERIOD_NS),
            queues: queues.map(|(vm, busy_ns)| QueueBusy { queue: queue(vm), busy_ns }).collect(),
            processors: processors
                .map(|(at, busy_ns)| ProcessorBusy { processor: ProcessorId(at), busy_ns })
                .collect(),
        };
        let observed = self.vmq.observe(&measurements, now);
        self.order(&observed.moves)
    }

    /// A queue has been handed over.
    pub(crate) fn moved(&mut self, vm: u32, to: u16, now: Time) {
        self.moving -= 1;
        self.vmq.handle_moved(queue(vm), ProcessorId(to), now);
    }

    /// So many processors may be used from now on; returns what is to be handed over.
    ///
    /// # Errors
    /// What the policy refuses.
    pub(crate) fn limit(&mut self, max_processors: u16, now: Time) -> Result<Moves> {
        let spec = VmqSpec { max_processors, ..self.vmq.spec().clone() };
        let moves = self.vmq.set_spec(spec, now)?;
        Ok(self.order(&moves))
    }

    /// Processors that have queues, ascending.
    pub(crate) fn used(&self) -> Vec<u16> {
        let mut used: Vec<u16> = self.vmq.placement().map(|(_, at)| at.0).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    fn order(&mut self, moves: &[Move]) -> Moves {
        self.moving += moves.len() as u16;
        moves.iter().map(|of| (of.queue.port.0, of.to.0)).collect()
    }
}

fn queue(vm: u32) -> QueueId {
    QueueId { port: PortId(vm), direction: Direction::Egress, index: 0 }
}
