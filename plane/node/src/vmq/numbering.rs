//! Conversion between the configuration's numbers of workers and the plane's ids.

use suimon_ports::{CpuPlace, Placement};
use suimon_quantity::ProcessorId;
use suimon_switch::ProcessorView;
use suimon_vmq::Processor;

/// First core number of workers without a fixed CPU: they are assumed to share no core. Cores are
/// numbered by CPU, and CPU numbers have 16 bits.
const FLOATING_CORES: u32 = 1 << 16;

/// Workers by the number that the configuration and the policy use, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbering(Vec<(ProcessorId, Processor)>);

impl Numbering {
    /// Returns the numbering of running workers: configured ones in their order, then others.
    pub(super) fn of(wanted: &[Placement], views: &[ProcessorView], places: &[CpuPlace]) -> Self {
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
    pub(super) fn of_placements(wanted: &[Placement], places: &[CpuPlace]) -> Self {
        Self::count((0..).map(ProcessorId).zip(wanted.iter().copied()), places)
    }

    fn count(running: impl Iterator<Item = (ProcessorId, Placement)>, places: &[CpuPlace]) -> Self {
        let numbered = (0..).zip(running).map(|(number, (id, placement))| {
            let at = places.iter().find(|place| placement.cpu() == Some(place.cpu));
            let core = match (at, placement.cpu()) {
                (Some(at), _) => at.core,
                (None, Some(cpu)) => u32::from(cpu),
                (None, None) => FLOATING_CORES + u32::from(number),
            };
            let numa_node = at.map_or(0, |at| at.numa_node);
            (id, Processor { number: ProcessorId(number), core, numa_node })
        });
        Self(numbered.collect())
    }

    /// Returns the workers as input of the policy.
    pub(super) fn processors(&self) -> Vec<Processor> {
        self.0.iter().map(|(_, processor)| *processor).collect()
    }

    /// Returns the configuration's number of a worker.
    pub(super) fn number(&self, id: ProcessorId) -> Option<ProcessorId> {
        self.0.iter().find(|(of, _)| *of == id).map(|(_, processor)| processor.number)
    }

    /// Returns the plane's id of a worker.
    pub(super) fn id(&self, number: ProcessorId) -> Option<ProcessorId> {
        self.0.get(usize::from(number.0)).map(|(id, _)| *id)
    }

    /// Returns true if each worker in both numberings has the same number.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        self.0.iter().all(|(id, processor)| {
            other.number(*id).is_none_or(|number| number == processor.number)
                && other.id(processor.number).is_none_or(|of| of == *id)
        })
    }
}
