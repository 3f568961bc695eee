//! Contention between CPUs.
//!
//! Equations
//! - Work takes (1 + κ n) times as long while n other CPUs are busy, since they share caches,
//!   memory and locks. This is the contention term of Gunther's universal scalability law ("A
//!   general theory of computational scalability", arXiv:0808.1431), without its coherency term.
//! - A thread whose sibling on the core is busy runs at `busy_sibling_speed_percent` of its speed
//!   alone.
//!
//! Parameters: a relative speed of 0.65 for two busy threads of a core corresponds to Intel's "up
//! to 30 %" for Hyper-Threading (Marr et al., Intel Technology Journal 6(1), 2002). κ is defined by
//! the scenario.

use suimon_quantity::WorkerId;
use suimon_vmq::WorkerSpec;

/// CPUs of a machine, and their contention for shared resources.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuSharingModel {
    pub(crate) logical_cpus: u16,
    pub(crate) threads_per_core: u16,
    pub(crate) numa_nodes: u16,
    pub(crate) busy_sibling_speed_percent: u64,
}

impl CpuSharingModel {
    /// Returns the number of cores.
    pub(crate) fn cores(&self) -> u16 {
        (self.logical_cpus / self.threads_per_core).max(1)
    }

    /// Returns the core of a CPU. Siblings are half the number of CPUs apart, as numbered by Linux.
    pub(crate) fn core(&self, number: u16) -> u16 {
        number % self.cores()
    }

    /// Returns the NUMA node of a CPU.
    pub(crate) fn numa_node(&self, number: u16) -> u16 {
        self.core(number) * self.numa_nodes / self.cores()
    }

    /// Returns the other threads of a CPU's core.
    pub(crate) fn siblings(&self, number: u16) -> impl Iterator<Item = u16> + '_ {
        let core = usize::from(self.core(number));
        let threads = (0..self.logical_cpus).skip(core).step_by(self.cores().into());
        threads.filter(move |other| *other != number)
    }

    /// Returns the description of all CPUs that the VMQ policy requires.
    pub(crate) fn worker_specs(&self) -> Vec<WorkerSpec> {
        let worker_spec = |number| WorkerSpec {
            number: WorkerId(number),
            core: self.core(number).into(),
            numa_node: self.numa_node(number),
        };
        (0..self.logical_cpus).map(worker_spec).collect()
    }

    /// Returns the duration in ns of work that takes `alone_ns` without contention.
    /// `kappa_n_permille` is κ n in thousandths; `has_sibling` is true if the sibling thread is
    /// busy.
    pub(crate) fn duration_ns(
        &self,
        alone_ns: u64,
        kappa_n_permille: u64,
        has_sibling: bool,
    ) -> u64 {
        let contended = alone_ns * (1000 + kappa_n_permille) / 1000;
        let ns =
            if has_sibling { contended * 100 / self.busy_sibling_speed_percent } else { contended };
        ns.max(1)
    }
}
