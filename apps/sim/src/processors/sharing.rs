//! What processors take from each other.
//!
//! Equations
//! - Work takes (1 + κ n) times as long while n other processors work: they share caches, memory
//!   and locks. This is the contention term of Gunther's universal scalability law ("A general
//!   theory of computational scalability", arXiv:0808.1431); its coherency term is left out.
//! - If the core's other thread works, a thread is as quick as `sibling_percent` says.
//!
//! Parameters: two busy threads of a core being 0.65 times as quick each is Intel's "up to 30 %"
//! for Hyper-Threading (Marr et al., Intel Technology Journal 6(1), 2002). κ is a scenario's.

use suimon_quantity::ProcessorId;
use suimon_vmq::Processor;

/// Processors, and what they share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing {
    pub(crate) logical_cpus: u16,
    pub(crate) threads_per_core: u16,
    pub(crate) numa_nodes: u16,
    pub(crate) sibling_percent: u64,
}

impl Sharing {
    /// Cores.
    pub(crate) fn cores(&self) -> u16 {
        (self.logical_cpus / self.threads_per_core).max(1)
    }

    /// The core of a processor: siblings are half of them apart, as Linux counts threads.
    pub(crate) fn core(&self, number: u16) -> u16 {
        number % self.cores()
    }

    /// The NUMA node of a processor.
    pub(crate) fn numa_node(&self, number: u16) -> u16 {
        self.core(number) * self.numa_nodes / self.cores()
    }

    /// The other threads of its core.
    pub(crate) fn siblings(&self, number: u16) -> impl Iterator<Item = u16> + '_ {
        let core = usize::from(self.core(number));
        let all = (0..self.logical_cpus).skip(core).step_by(self.cores().into());
        all.filter(move |other| *other != number)
    }

    /// The processors as policies know them.
    pub(crate) fn processors(&self) -> Vec<Processor> {
        let of = |number| Processor {
            number: ProcessorId(number),
            core: self.core(number).into(),
            numa_node: self.numa_node(number),
        };
        (0..self.logical_cpus).map(of).collect()
    }

    /// How long work takes that takes `alone_ns` where nobody else works: κ n, and whether the
    /// core's other thread works.
    pub(crate) fn takes_ns(&self, alone_ns: u64, kappa_n_permille: u64, has_sibling: bool) -> u64 {
        let contended = alone_ns * (1000 + kappa_n_permille) / 1000;
        let ns = if has_sibling { contended * 100 / self.sibling_percent } else { contended };
        ns.max(1)
    }
}
