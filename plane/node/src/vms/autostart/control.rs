//! Begin of the autostart, by the control thread.

use std::collections::BTreeSet;
use std::time::Instant;

use suimon_contract::Name;
use suimon_ports::StateStoreError;

use super::{HostAutostart, load_unended, not_recorded};
use crate::control::Controller;
use crate::state::{load_autostart_boot_id, load_boot_id, save_autostart_boot_id, save_boot_id};
use crate::vms::inbox::Message;
use crate::vms::work::VmAction;

impl Controller {
    /// Determines at the daemon's start whether an autostart is due, and records the boot of the
    /// host.
    ///
    /// # Errors
    /// The state store cannot be read or written.
    pub(in crate::vms) fn load_autostart(&mut self) -> Result<(), StateStoreError> {
        let (store, boot) = (self.store.as_ref(), &self.shared.vms.dependencies.boot_id);
        let last_boot = load_boot_id(store)?;
        let autostarted = load_autostart_boot_id(store)?.or_else(|| last_boot.clone());
        self.autostart.is_due = autostarted.as_ref().is_some_and(|before| before != boot);
        self.autostart.unended = load_unended(store)?;
        if last_boot.as_ref() == Some(boot) {
            return Ok(());
        }
        // The autostart stays due until it is recorded, even if this daemon ends before. The first
        // daemon of a host starts no VM: its host file only defines them.
        let autostarted = autostarted.as_ref().unwrap_or(boot);
        store.commit(&[save_boot_id(boot), save_autostart_boot_id(autostarted)])
    }

    /// Starts the VMs with `autostart` once per boot of the host, and continues an autostart that a
    /// former daemon has not ended. Called when the host file of the boot is in effect.
    pub(crate) fn begin_autostart(&mut self) {
        self.autostart.attempt_at = Some(Instant::now());
        self.continue_autostart();
    }

    /// Records a begun autostart and requests the start of its VMs. A failed attempt is repeated.
    /// Called by the control thread after every command and timeout.
    pub(crate) fn continue_autostart(&mut self) {
        let now = Instant::now();
        if self.autostart.attempt_at.is_none_or(|attempt_at| now < attempt_at) {
            return;
        }
        let desired = self.shared.desired();
        let boot = &self.shared.vms.dependencies.boot_id;
        let vms = desired.config.vms.iter().filter(|vm| vm.autostart);
        let started: BTreeSet<Name> = vms
            .map(|vm| vm.name.clone())
            .filter(|name| self.autostart.includes(name, boot))
            .collect();
        let changes = self.autostart.changes(&started, boot);
        let recorded = if changes.is_empty() { Ok(()) } else { self.store.commit(&changes) };
        if let Err(error) = recorded {
            if self.autostart.failure.record_failure(&error) {
                self.drafts.push(not_recorded(&error));
            }
            self.autostart.attempt_at = Some(now + self.devices.retry_first);
            return;
        }
        self.autostart = HostAutostart::default();
        for entry in started.iter().filter_map(|name| self.shared.vms.find(name)) {
            entry.inbox.put(Message::Action(VmAction::Start, None));
        }
    }
}
