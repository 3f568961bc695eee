//! Placement of queues on workers: decisions of `policy/vmq`, called as by `plane/node`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use suimon_quantity::{Direction, PortId, QueueId, Time, WorkerId};
use suimon_sim_kernel::SECOND_NS;
use suimon_vmq::{Measurements, Move, NicSpec, QueueBusy, Vmq, VmqSpec, WorkerBusy, WorkerSpec};

/// Interval of load measurements in ns.
pub(crate) const PERIOD_NS: u64 = SECOND_NS / 4;

/// Busy times in one measuring period, in ns: of the queue of each VM, and of each worker.
pub(crate) struct BusyTimes {
    pub(crate) queue_ns: Vec<u64>,
    pub(crate) worker_ns: Vec<u64>,
}

/// Moves of queues: the VM that a queue belongs to, and the destination worker.
pub(crate) type Moves = Vec<(u32, u16)>;

/// Placement with one queue per VM.
pub(crate) struct Placement {
    vmq: Vmq,
    /// Number of queues being moved.
    pub(crate) moving_queues: u16,
}

impl Placement {
    /// Creates the placement and adds the queue of every VM. Also returns the initial worker of
    /// each queue, and moves to carry out immediately.
    ///
    /// # Errors
    /// The policy rejects the configuration.
    pub(crate) fn new(
        spec: VmqSpec,
        processors: &[WorkerSpec],
        vms: u32,
    ) -> Result<(Self, Vec<u16>, Moves)> {
        let vmq = Vmq::new(spec, processors, Time::ZERO)?;
        let mut placement = Self { vmq, moving_queues: 0 };
        let (mut owners, mut moves) = (BTreeMap::new(), Vec::new());
        for vm in 0..vms {
            let now = Time::ZERO;
            let of_nic = placement.vmq.set_nic(PortId(vm), NicSpec::default(), 1, now)?;
            moves.extend(placement.order(&of_nic));
            let added = placement.vmq.add_queue(queue(vm), now)?;
            owners.insert(vm, added.worker.0);
            moves.extend(placement.order(&added.moves));
        }
        Ok((placement, owners.into_values().collect(), moves))
    }

    /// Processes the measurement of a period. Returns the moves to carry out.
    pub(crate) fn observe(&mut self, busy: BusyTimes, now: Time) -> Moves {
        let queues = (0..).zip(busy.queue_ns);
        let workers = (0..).zip(busy.worker_ns);
        let measurements = Measurements {
            period: Duration::from_nanos(PERIOD_NS),
            queues: queues.map(|(vm, busy_ns)| QueueBusy { queue: queue(vm), busy_ns }).collect(),
            workers: workers
                .map(|(worker_number, busy_ns)| WorkerBusy {
                    worker: WorkerId(worker_number),
                    busy_ns,
                })
                .collect(),
        };
        let observed = self.vmq.observe(&measurements, now);
        self.order(&observed.moves)
    }

    /// Informs the policy that the move of a queue is complete.
    pub(crate) fn handle_move_completed(&mut self, vm: u32, worker: u16, now: Time) {
        self.moving_queues -= 1;
        self.vmq.handle_moved(queue(vm), WorkerId(worker), now);
    }

    /// Changes the number of workers that VMQ may use. Returns the moves to carry out.
    ///
    /// # Errors
    /// The policy rejects the limit.
    pub(crate) fn set_max_workers(&mut self, max_processors: u16, now: Time) -> Result<Moves> {
        let spec = VmqSpec { max_workers: max_processors, ..self.vmq.spec().clone() };
        let moves = self.vmq.set_spec(spec, now)?;
        Ok(self.order(&moves))
    }

    /// Returns the numbers of the workers that own queues, in ascending order.
    pub(crate) fn workers_in_use(&self) -> Vec<u16> {
        let mut used: Vec<u16> = self.vmq.placement().map(|(_, worker_id)| worker_id.0).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    fn order(&mut self, moves: &[Move]) -> Moves {
        self.moving_queues += moves.len() as u16;
        moves.iter().map(|queue_move| (queue_move.queue.port.0, queue_move.to.0)).collect()
    }
}

fn queue(vm: u32) -> QueueId {
    QueueId { port: PortId(vm), direction: Direction::Egress, index: 0 }
}
