//! VMQ of all uplinks and teams: measures four times per second, and executes moves.

mod driving;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use suimon_contract::{HostConfig, Name};
use suimon_quantity::{Time, WorkerId};
use suimon_switch::WorkerStatus;
use suimon_vmq::WorkerBusy;

use crate::vmq::numbering::Numbering;
use crate::vmq::placement::Placement;

/// State of VMQ: written by the control thread, read by status requests. Not locked while queues
/// are handed over.
#[derive(Default)]
pub(crate) struct VmqTable(Mutex<Inner>);

#[derive(Default)]
pub(super) struct Inner {
    config: HostConfig,
    pub(super) numbering: Numbering,
    /// Placements by the name of the uplink or team.
    pub(super) placements: BTreeMap<Name, Placement>,
    /// Time of the last measurement; `None` before the first.
    looked_at: Option<Time>,
    /// Working time of each worker up to the last measurement, without empty polls, in nanoseconds.
    worked_ns: BTreeMap<WorkerId, u64>,
}

impl VmqTable {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Returns each worker's working time since the last call, without empty polls, by the
    /// configuration's number. New workers are omitted.
    fn busy(&mut self, workers: &[WorkerStatus]) -> Vec<WorkerBusy> {
        let working_ns = workers.iter().map(|view| (view.id, view.working_ns)).collect();
        let before = std::mem::replace(&mut self.worked_ns, working_ns);
        let busy = workers.iter().filter_map(|view| {
            let before = before.get(&view.id)?;
            let busy_ns = view.working_ns.saturating_sub(*before);
            Some(WorkerBusy { worker: self.numbering.number(view.id)?, busy_ns })
        });
        busy.collect()
    }

    /// Returns the initial worker of new queues, by port.
    fn homes(&self) -> BTreeMap<suimon_quantity::PortId, WorkerId> {
        let ports = self.placements.values().flat_map(|placing| {
            let ports = placing.plan().ports.keys();
            ports.filter_map(|port| {
                Some((*port, self.numbering.id(placing.vmq.initial_worker(*port)?)?))
            })
        });
        ports.collect()
    }
}
