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
    pub(super) fn of(
        wanted: &[CpuAffinity],
        views: &[WorkerStatus],
        places: &[CpuTopology],
    ) -> Self {
        let mut left: Vec<_> = views.iter().map(|view| (view.id, view.placement)).collect();
        let mut running = Vec::new();
        for placement in wanted {
            // If several workers have this placement, each number refers to one of them.
            if let Some(at) = left.iter().position(|(_, running)| running == placement) {
                running.push(left.remove(at));
            }
        }
        running.append(&mut left);
        Self::count(running.into_iter(), places)
    }

    /// Returns the numbering of a host whose workers all run as configured.
    pub(super) fn of_placements(wanted: &[CpuAffinity], places: &[CpuTopology]) -> Self {
        Self::count((0..).map(WorkerId).zip(wanted.iter().copied()), places)
    }

    fn count(
        running: impl Iterator<Item = (WorkerId, CpuAffinity)>,
        places: &[CpuTopology],
    ) -> Self {
        let numbered = (0..).zip(running).map(|(number, (id, placement))| {
            let at = places.iter().find(|place| placement.cpu() == Some(place.cpu));
            let core = match (at, placement.cpu()) {
                (Some(at), _) => at.core,
                (None, Some(cpu)) => u32::from(cpu),
                (None, None) => FLOATING_CORES + u32::from(number),
            };
            let numa_node = at.map_or(0, |at| at.numa_node);
            (id, WorkerSpec { number: WorkerId(number), core, numa_node })
        });
        Self(numbered.collect())
    }

    /// Returns the workers as input of the policy.
    pub(super) fn workers(&self) -> Vec<WorkerSpec> {
        self.0.iter().map(|(_, worker)| *worker).collect()
    }

    /// Returns the configuration's number of a worker.
    pub(super) fn number(&self, id: WorkerId) -> Option<WorkerId> {
        self.0.iter().find(|(of, _)| *of == id).map(|(_, worker)| worker.number)
    }

    /// Returns the plane's id of a worker.
    pub(super) fn id(&self, number: WorkerId) -> Option<WorkerId> {
        self.0.get(usize::from(number.0)).map(|(id, _)| *id)
    }

    /// Returns true if each worker in both numberings has the same number.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        self.0.iter().all(|(id, worker)| {
            other.number(*id).is_none_or(|number| number == worker.number)
                && other.id(worker.number).is_none_or(|of| of == *id)
        })
    }
}
