//! Autostart of VMs after a boot of the host.
//!
//! An autostart is recorded before the first VM is started, together with the VMs that it starts.
//! The record of a VM is deleted when its autostart has ended: the VM was started, failed to start,
//! or does not have `autostart` any more. A daemon that starts before continues the autostart of
//! the VMs that are recorded, and starts no other VM again.

mod control;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use suimon_contract::{EventKind, Name};
use suimon_ports::{StateStore, StateStoreError};

use crate::events::EventDraft;
use crate::state::{ReportedFailure, StoreChange, save_autostart_boot_id, scan_all};

/// Table of VMs whose autostart has not ended: boot id of the host by VM name.
const AUTOSTARTS: &str = "autostarts";

/// Autostart of the host's VMs until it is recorded.
#[derive(Default)]
pub(crate) struct HostAutostart {
    /// True if the host has booted since the last autostart.
    is_due: bool,
    /// Boot ids of VMs whose autostart a former daemon has not ended.
    unended: BTreeMap<Name, String>,
    /// Time of the next attempt to record the autostart; `None` before the host file is applied,
    /// and after the autostart is recorded.
    attempt_at: Option<Instant>,
    failure: ReportedFailure,
}

impl HostAutostart {
    /// Returns true if a VM with `autostart` is to be started in this boot of the host.
    fn includes(&self, vm: &Name, boot: &str) -> bool {
        self.is_due || self.unended.get(vm).is_some_and(|recorded| recorded == boot)
    }

    /// Returns the changes that record the autostart of the VMs `started`.
    fn changes(&self, started: &BTreeSet<Name>, boot: &str) -> Vec<StoreChange> {
        let mut changes = Vec::new();
        if self.is_due {
            let record = |vm: &Name| (AUTOSTARTS, vm.to_string(), Some(boot.as_bytes().to_vec()));
            changes.push(save_autostart_boot_id(boot));
            changes.extend(started.iter().map(record));
        }
        let ended = self.unended.keys().filter(|vm| !started.contains(*vm));
        changes.extend(ended.map(clear_autostart));
        changes
    }
}

/// Returns the change that deletes the record of a VM's autostart.
pub(super) fn clear_autostart(vm: &Name) -> StoreChange {
    (AUTOSTARTS, vm.to_string(), None)
}

/// Returns the VMs whose autostart has not ended, with the boot id of the host.
fn load_unended(store: &dyn StateStore) -> Result<BTreeMap<Name, String>, StateStoreError> {
    let mut unended = BTreeMap::new();
    scan_all(store, AUTOSTARTS, &mut |key, value| {
        // Skips names that the current rules do not permit.
        if let Ok(vm) = key.parse::<Name>() {
            unended.insert(vm, String::from_utf8_lossy(value).into_owned());
        }
        Ok(())
    })?;
    Ok(unended)
}

/// Returns the event of an autostart that waits until it can be recorded.
fn not_recorded(error: &StateStoreError) -> EventDraft {
    let text = format!(
        "VMs with `autostart` are not started, because their start cannot be recorded. They start \
         when the state directory can be written; the daemon retries. {error}"
    );
    EventDraft::new(EventKind::RecordNotSaved, "host", text)
        .with("record", "autostart")
        .with("reason", error)
        .rate_limited()
}
