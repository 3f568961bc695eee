//! Totals of a case since the start of measurement.

use crate::host::cpus::WorkItem;
use crate::host::resolved_case::ResolvedCase;
use crate::host::route::Leg;

/// Totals of one VM in a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct VmTotals {
    pub(crate) completed_requests: u64,
    pub(crate) bytes: u64,
    /// CPU time of the VM's own work in ns.
    pub(crate) vm_ns: u64,
    /// CPU time of the host for the VM in ns.
    pub(crate) host_ns: u64,
    /// CPU time of each module in ns, by the module's number.
    pub(crate) module_ns: Vec<u64>,
}

/// Totals of all VMs in a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaseTotals {
    pub(crate) vms: Vec<VmTotals>,
    pub(crate) busy_ns: Vec<u64>,
    /// Energy in mW · ns since the start of measurement.
    pub(crate) energy: u128,
    pub(crate) frames_out: u64,
    pub(crate) broadcasts_out: u64,
}

impl CaseTotals {
    /// Creates totals in which every count is 0.
    pub(crate) fn new(plan: &ResolvedCase<'_>) -> Self {
        let empty_sum =
            VmTotals { module_ns: vec![0; plan.modules.0.len()], ..VmTotals::default() };
        Self { vms: vec![empty_sum; plan.vms.len()], ..Self::default() }
    }
}

impl VmTotals {
    /// Adds the CPU time of a completed item of work, and divides it among the modules of its leg.
    pub(crate) fn add(&mut self, leg: &Leg, piece: &WorkItem) {
        for (module, ns) in &leg.module_ns {
            self.module_ns[usize::from(*module)] += piece.spent_ns * ns / leg.duration_ns.max(1);
        }
        if piece.is_host_work {
            self.host_ns += piece.spent_ns;
        } else {
            self.vm_ns += piece.spent_ns;
        }
    }
}
