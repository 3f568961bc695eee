//! Start of a node from the stored state.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use suimon_contract::EventKind;
use suimon_ports::{StateStore, StateStoreError};
use thiserror::Error;

use crate::command::Command;
use crate::control::Controller;
use crate::disks::{UnfinishedJobs, required_disks, required_sockets, taken_over_sockets};
use crate::events::EventDraft;
use crate::host::StateStoreWatch;
use crate::host::confinement;
use crate::ports::{Devices, Port, port_failed_event, required_ports};
use crate::retry::RetryState;
use crate::shared::Shared;
use crate::state::{Intent, StoredState, clear_intent, load_intent};
use crate::teams::TeamThreads;
use crate::virtual_functions::VfController;
use crate::vms::{HostAutostart, disks_on_other_nodes};

/// Error at the start of a node.
#[derive(Debug, Error)]
pub enum NodeError {
    /// The state store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StateStoreError),
    /// The switching plane rejected the stored desired state.
    #[error("the switch rejected the configuration in the state directory: {0}")]
    Tables(String),
    /// Threads could not be created.
    #[error("the control threads could not be started: {0}")]
    Thread(std::io::Error),
}

/// Brings the host to the stored desired state. Devices that cannot be opened are retried later and
/// do not prevent the start of others.
///
/// # Errors
/// The store fails, the plane rejects the tables, or threads cannot be created.
pub(crate) fn start_up(
    shared: &Arc<Shared>,
    store: Arc<dyn StateStore>,
    notices: SyncSender<Command>,
    retry_first: Duration,
    is_new: bool,
) -> Result<Controller, NodeError> {
    let intent = load_intent(store.as_ref())?;
    let state = shared.desired();
    let devices = Devices::load(shared.clone(), store.clone(), notices, retry_first)?;
    let mut controller = Controller {
        shared: shared.clone(),
        store,
        devices,
        worker_placements: shared.plane.workers().into_iter().map(|view| view.placement).collect(),
        workers_retry: RetryState::default(),
        drafts: vec![store_opened(&state, is_new)],
        plane_polled_at: None,
        pfs_checked_at: Instant::now(),
        stores_queried_at: Instant::now(),
        state_store_watch: StateStoreWatch::default(),
        nearly_full_stores: BTreeSet::new(),
        failed_stores: BTreeSet::new(),
        vf_controller: VfController::default(),
        teams: TeamThreads::start(shared, retry_first).map_err(NodeError::Thread)?,
        disk_jobs: Vec::new(),
        unfinished: UnfinishedJobs::new(),
        new_disks: BTreeSet::new(),
        unchecked_disks: BTreeSet::new(),
        measurements: Vec::new(),
        nics_on_other_nodes: BTreeSet::new(),
        autostart: HostAutostart::default(),
        incoming_vm: None,
    };
    if let Some(intent) = &intent {
        controller.drafts.push(interrupted(intent));
    }
    match controller.restore(&state) {
        Ok(()) => Ok(controller),
        Err(error) => {
            controller.shut_down();
            Err(error)
        }
    }
}

impl Controller {
    /// Brings the host to the stored desired state.
    fn restore(&mut self, state: &StoredState) -> Result<(), NodeError> {
        let shared = self.shared.clone();
        let required = required_ports(&state.config);
        shared.bound_addresses.load(self.store.as_ref())?;
        shared.change_ids(|ids| ids.assign(&state.config, &required));
        if let Err(error) = self.restore_workers(&state.config) {
            let text = format!(
                "{error}; workers run without CPU affinity, and the daemon retries to pin them"
            );
            self.drafts.push(EventDraft::new(EventKind::ChangeRolledBack, "host", text));
        }
        let disks = required_disks(&state.config);
        let sockets = required_sockets(&disks);
        self.devices.created.delete_unrequired(required.values(), &taken_over_sockets(&disks));
        self.devices.created.record(required.values())?;
        self.devices.created.record_sockets(sockets)?;
        // Before uplinks are opened, because their device may be a virtual function.
        self.check_adapters();
        let vms = self.prepare_stored_vms(&state.config)?;
        self.register_stored_vfs(&state.config, &vms);
        // Includes recorded migrations of VMs: frames may arrive as soon as devices are open, while
        // VMs may respond much later.
        self.publish(&state.config).map_err(|error| NodeError::Tables(error.to_string()))?;
        self.start_power(&state.config)?;
        let ids = shared.ids();
        for (key, spec) in required.clone() {
            let Some(id) = ids.port(&key) else { continue };
            let port = Arc::new(Port::new(key, id, spec));
            shared.ports.insert(port.clone());
            if let Err(error) = self.devices.open(&port) {
                let reason = error.to_string();
                self.drafts.push(port_failed_event(&port.key, &reason));
                self.devices.fail(&port, reason);
            }
        }
        self.devices.created.record_opened(required.values())?;
        self.open_stored(&state.config, disks, &disks_on_other_nodes(&vms))?;
        self.delete_recorded_files(&state.config)?;
        self.start_stored_vm_drivers(vms)?;
        // Second time, with the MTU of uplinks without a configured MTU.
        self.publish(&state.config).map_err(|error| NodeError::Tables(error.to_string()))?;
        shared.record_names();
        let text = format!("The daemon was started, version {}.", shared.version);
        self.drafts.push(EventDraft::new(EventKind::DaemonStarted, "host", text));
        self.drafts.push(confinement::start_event(&(shared.confinement)()));
        let drafts = std::mem::take(&mut self.drafts);
        shared.events.commit(drafts, vec![clear_intent()])?;
        Ok(())
    }
}

fn store_opened(state: &StoredState, is_new: bool) -> EventDraft {
    let text = if is_new {
        "The state directory was created; the configuration is empty.".to_owned()
    } else {
        format!("The state directory was opened at revision {}.", state.revision)
    };
    EventDraft::new(EventKind::StoreOpened, "host", text).with("revision", state.revision)
}

fn interrupted(intent: &Intent) -> EventDraft {
    let text = format!(
        "The previous daemon exited during a change ({}), which was rolled back; the former \
         configuration is in effect.",
        intent.kind
    );
    EventDraft::new(EventKind::ChangeRolledBack, "host", text)
        .with("operation", &intent.kind)
        .with("revision", intent.revision)
}

#[cfg(test)]
#[path = "start_up_tests.rs"]
mod tests;
