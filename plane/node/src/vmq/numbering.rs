//! The numbers of processors.

use suimon_ports::{CpuPlace, Placement};
use suimon_quantity::ProcessorId;
use suimon_switch::ProcessorView;
use suimon_vmq::Processor;

/// Cores of processors that are not pinned are numbered from here: they share no core that
/// anybody knows of. CPUs, after which cores are numbered, have numbers of 16 bits.
const FLOATING_CORES: u32 = 1 << 16;

/// Processors by the numbers that a configuration and the policy have for them, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbering(Vec<(ProcessorId, Processor)>);

impl Numbering {
    /// Processors that run, in the order in which they are wanted, then those that nobody
    /// wants.
    pub(super) fn of(wanted: &[Placement], views: &[ProcessorView], places: &[CpuPlace]) -> Self {
        let mut left: Vec<_> = views.iter().map(|view| (view.id, view.placement)).collect();
        let mut running = Vec::new();
        for placement in wanted {
            // Several may be where this is to be: each is one of those.
            if let Some(at) = left.iter().position(|(_, running)| running == placement) {
                running.push(left.remove(at));
            }
        }
        running.append(&mut left);
        Self::count(running.into_iter(), places)
    }

    /// What a host that runs as wanted would have.
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

    /// As the policy has them.
    pub(super) fn processors(&self) -> Vec<Processor> {
        self.0.iter().map(|(_, processor)| *processor).collect()
    }

    /// The configuration's number of one of the plane's processors.
    pub(super) fn number(&self, id: ProcessorId) -> Option<ProcessorId> {
        self.0.iter().find(|(of, _)| *of == id).map(|(_, processor)| processor.number)
    }

    /// The plane's number for one of the configuration's.
    pub(super) fn id(&self, number: ProcessorId) -> Option<ProcessorId> {
        self.0.get(usize::from(number.0)).map(|(id, _)| *id)
    }

    /// Whether every processor of both has the same number.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        self.0.iter().all(|(id, processor)| {
            other.number(*id).is_none_or(|number| number == processor.number)
                && other.id(processor.number).is_none_or(|of| of == *id)
        })
    }
}
