//! Totals of a case since the start of measurement.

use crate::host::cpus::WorkItem;
use crate::host::plan::Plan;
use crate::host::route::Leg;

/// Totals of one VM in a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct VmSum {
    pub(crate) done: u64,
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
pub(crate) struct Sum {
    pub(crate) vms: Vec<VmSum>,
    pub(crate) busy_ns: Vec<u64>,
    /// Energy in mW · ns since the start of measurement.
    pub(crate) energy: u128,
    pub(crate) frames_out: u64,
    pub(crate) broadcasts_out: u64,
}

impl Sum {
    /// Creates totals in which every count is 0.
    pub(crate) fn new(plan: &Plan<'_>) -> Self {
        let empty_sum = VmSum { module_ns: vec![0; plan.modules.0.len()], ..VmSum::default() };
        Self { vms: vec![empty_sum; plan.vms.len()], ..Self::default() }
    }
}

impl VmSum {
    /// Adds the CPU time of a completed item of work, and divides it among the modules of its leg.
    pub(crate) fn add(&mut self, leg: &Leg, piece: &WorkItem) {
        for (module, ns) in &leg.modules {
            self.module_ns[usize::from(*module)] += piece.spent_ns * ns / leg.ns.max(1);
        }
        if piece.is_host {
            self.host_ns += piece.spent_ns;
        } else {
            self.vm_ns += piece.spent_ns;
        }
    }
}
