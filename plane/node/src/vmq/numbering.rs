//! Conversion between the configuration's numbers of workers and the plane's ids.

use suimon_ports::{CpuAffinity, CpuTopology};
use suimon_quantity::WorkerId;
use suimon_switch::WorkerStatus;
use suimon_vmq::WorkerSpec;

/// First core number of workers without a fixed CPU: they are assumed to share no core. Cores are
/// numbered by CPU, and CPU numbers have 16 bits.
const FLOATING_CORES: u32 = 1 << 16;

/// Workers by the number that the configuration and the policy use, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbering(Vec<(WorkerId, WorkerSpec)>);

impl Numbering {
    /// Returns the numbering of running workers: those of the configured placements in their order,
    /// then the others.
    pub(super) fn new(
        required: &[CpuAffinity],
        views: &[WorkerStatus],
        topologies: &[CpuTopology],
    ) -> Self {
        let mut remaining: Vec<_> = views.iter().map(|view| (view.id, view.placement)).collect();
        let mut running = Vec::new();
        for placement in required {
            // If several workers have this placement, each number refers to one of them.
            if let Some(index) = remaining.iter().position(|(_, running)| running == placement) {
                running.push(remaining.remove(index));
            }
        }
        running.append(&mut remaining);
        Self::count(running.into_iter(), topologies)
    }

    /// Returns the numbering of a host whose workers all run as configured.
    pub(super) fn from_placements(required: &[CpuAffinity], topologies: &[CpuTopology]) -> Self {
        Self::count((0..).map(WorkerId).zip(required.iter().copied()), topologies)
    }

    fn count(
        running: impl Iterator<Item = (WorkerId, CpuAffinity)>,
        topologies: &[CpuTopology],
    ) -> Self {
        let numbered = (0..).zip(running).map(|(number, (id, placement))| {
            let topology = topologies
                .iter()
                .find(|topology_entry| placement.cpu() == Some(topology_entry.cpu));
            let core = match (topology, placement.cpu()) {
                (Some(topology), _) => topology.core,
                (None, Some(cpu)) => u32::from(cpu),
                (None, None) => FLOATING_CORES + u32::from(number),
            };
            let numa_node = topology.map_or(0, |topology| topology.numa_node);
            (id, WorkerSpec { number: WorkerId(number), core, numa_node })
        });
        Self(numbered.collect())
    }

    /// Returns the workers as input of the policy.
    pub(super) fn workers(&self) -> Vec<WorkerSpec> {
        self.0.iter().map(|(_, worker)| *worker).collect()
    }

    /// Returns the configuration's number of the worker `id`; `None` if no such worker runs.
    pub(super) fn number(&self, id: WorkerId) -> Option<WorkerId> {
        self.0.iter().find(|(worker_id, _)| *worker_id == id).map(|(_, worker)| worker.number)
    }

    /// Returns the plane's id of the worker `number`; `None` if no such worker runs.
    pub(super) fn id(&self, number: WorkerId) -> Option<WorkerId> {
        self.0.get(usize::from(number.0)).map(|(id, _)| *id)
    }

    /// Returns true if each worker in both numberings has the same number.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        self.0.iter().all(|(id, worker)| {
            other.number(*id).is_none_or(|number| number == worker.number)
                && other.id(worker.number).is_none_or(|worker_id| worker_id == *id)
        })
    }
}
