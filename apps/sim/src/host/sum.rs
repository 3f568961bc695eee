//! What came of a case since counting began.

use crate::host::cpus::Piece;
use crate::host::plan::Plan;
use crate::host::route::Leg;

/// What came of a VM.
#[derive(Clone, Debug, Default)]
pub(crate) struct VmSum {
    pub(crate) done: u64,
    pub(crate) bytes: u64,
    /// Time of processors that its own work took, and the host's for it.
    pub(crate) vm_ns: u64,
    pub(crate) host_ns: u64,
    /// The same by module.
    pub(crate) module_ns: Vec<u64>,
}

/// What came of a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) vms: Vec<VmSum>,
    pub(crate) busy_ns: Vec<u64>,
    /// Milliwatts times ns.
    pub(crate) taken: u128,
    pub(crate) left: u64,
    pub(crate) left_broadcasts: u64,
}

impl Sum {
    /// Nothing has come of it.
    pub(crate) fn new(plan: &Plan<'_>) -> Self {
        let none = VmSum { module_ns: vec![0; plan.modules.0.len()], ..VmSum::default() };
        Self { vms: vec![none; plan.vms.len()], ..Self::default() }
    }
}

impl VmSum {
    /// A piece of work for it is done.
    pub(crate) fn add(&mut self, leg: &Leg, piece: &Piece) {
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
