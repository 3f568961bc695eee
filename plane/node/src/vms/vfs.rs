//! The virtual functions of a VM's NICs: plugged in beside their standby, and taken away.
//!
//! What a NIC is given is written down before anything is done about it, so that a daemon that
//! comes after finds it, and forgotten when nobody has it any more.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use suimon_contract::Name;
use suimon_ports::{Standby, VmCommand, VmDevice, VmError, VmErrorKind};

use super::driver::{Driver, Run};
use super::entry::{RunView, VmEntry};
use super::inbox::Message;
use crate::iov::{StoredVf, VfPlace, VfReport, for_nic, for_nobody};

/// How often a guest is asked whether it takes VFs, and whether it has one.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What is to be done about a NIC's VF.
#[derive(Clone, Debug)]
pub(crate) enum VfOrder {
    /// Plug it in.
    Give { nic: Name, vf: VfPlace },
    /// Have the guest let go of it.
    Take { nic: Name, vf: VfPlace },
}

/// What is known of the VFs of a VM that runs, beside what is written down.
#[derive(Debug, Default)]
pub(super) struct RunVfs {
    /// NICs whose guest's driver takes a VF beside them.
    pub(super) takers: std::collections::BTreeSet<Name>,
    /// VFs that were plugged in and that the guest does not have yet.
    offered: BTreeMap<Name, VfPlace>,
    /// VFs that the guest was asked to let go of.
    leaving: BTreeMap<Name, VfPlace>,
    pub(super) ask_at: Option<Instant>,
}

impl VmEntry {
    /// Has the VM's driver do something about a VF; it reports what came of it.
    pub(crate) fn order_vf(&self, order: VfOrder) {
        self.inbox.put(Message::Vf(order));
    }

    /// Returns true if the VM runs and has this NIC or a VF of it, or had it with a VF when it was
    /// last heard of.
    pub(crate) fn has_nic(&self, nic: &Name) -> bool {
        let view = self.view();
        let has = |run: &RunView| run.nics.contains(nic) || run.vfs.contains(nic);
        view.running.as_ref().is_some_and(has) || view.vfs_left.contains(nic)
    }
}

impl Run {
    /// The NICs that stand by for VFs.
    fn has_standbys(&self) -> bool {
        !self.stored.standbys.is_empty()
    }
}

impl Driver {
    pub(super) fn handle_vf_order(&mut self, order: VfOrder) {
        // It may still have its VFs, and cannot be told anything.
        if self.lost.is_some() {
            return self.vf_orders.push(order);
        }
        match order {
            VfOrder::Give { nic, vf } => {
                if let Err(reason) = self.give_vf(&nic, &vf) {
                    self.report(VfReport::Failed { nic, vf, reason });
                }
            }
            VfOrder::Take { nic, vf } => self.take_vf(&nic, vf),
        }
    }

    fn report(&self, report: VfReport) {
        self.shared.iov.report(report);
    }

    fn give_vf(&mut self, nic: &Name, vf: &VfPlace) -> Result<(), String> {
        let desired = self.shared.desired();
        let config = desired.config.nics.iter().find(|of| of.name == *nic);
        let (Some(run), Some(config)) = (&mut self.run, config) else {
            return Err("the VM is not running any more".to_owned());
        };
        if run.stored.vfs.contains_key(nic) {
            return Err("the NIC still has another VF".to_owned());
        }
        // It was ordered before it was known that the VM moves: memory that a function writes to
        // cannot be copied.
        if self.moving.is_some() {
            return Err("the VM is migrating".to_owned());
        }
        run.stored.vfs.insert(nic.clone(), StoredVf::from(vf));
        let (vm, memory) = (run.vm.clone(), run.stored.as_started.memory_bytes);
        let memory = suimon_contract::ByteSize::bytes(memory);
        self.save_run();
        if self.run.as_ref().is_some_and(|run| !run.is_written) {
            return Err("the state store cannot be written; see the daemon's log".to_owned());
        }
        let text = |error: VmError| error.text;
        self.shared.vms.parts.host.give_vf(&vm.identity(), vf.address, memory).map_err(text)?;
        // Last of all before the guest has it: from here on the adapter gives it what is for
        // the NIC.
        self.shared.set_vf(vf, |is| for_nic(is, config))?;
        let address = vf.address;
        vm.tell(&VmCommand::PlugVf { nic: nic.to_string(), address }).map_err(text)?;
        if let Some(run) = &mut self.run {
            run.vfs.offered.insert(nic.clone(), vf.clone());
        }
        self.ask_for_vfs();
        self.publish_again();
        Ok(())
    }

    fn take_vf(&mut self, nic: &Name, vf: VfPlace) {
        let is_here = |run: &Run| run.stored.vfs.get(nic) == Some(&StoredVf::from(&vf));
        let Some(run) = self.run.as_mut().filter(|run| is_here(run)) else {
            // It ended, or never came so far; what it had was released then.
            return self.report(VfReport::Released { nic: nic.clone(), vf });
        };
        run.vfs.offered.remove(nic);
        match run.vm.tell(&VmCommand::Unplug(VmDevice::Vf(nic.to_string()))) {
            Err(error) if error.kind == VmErrorKind::Gone => self.release(nic),
            told => {
                if let Err(error) = told {
                    tracing::warn!(
                        vm = %self.entry.name,
                        %nic,
                        %error,
                        "cannot unplug a VF; the daemon retries"
                    );
                }
                run.vfs.leaving.insert(nic.clone(), vf);
                run.vfs.ask_at = Some(Instant::now() + ASK_AGAIN);
            }
        }
    }

    /// The guest has let go of a VF, whether or not it was asked to.
    pub(super) fn handle_vf_unplugged(&mut self, nic: &str) {
        let Ok(nic) = nic.parse::<Name>() else { return };
        let Some(run) = &mut self.run else { return };
        let was_asked = run.vfs.leaving.contains_key(&nic);
        if let Some(vf) = run.stored.vfs.get(&nic).and_then(StoredVf::place) {
            if !was_asked {
                let reason = "the VF was unplugged by the guest, or the adapter removed it";
                self.report(VfReport::Failed { nic: nic.clone(), vf, reason: reason.to_owned() });
            }
        }
        self.release(&nic);
    }

    /// Nobody has the VF of a NIC any more.
    fn release(&mut self, nic: &Name) {
        let Some(run) = &mut self.run else { return };
        let Some(stored) = run.stored.vfs.remove(nic) else { return };
        run.vfs.offered.remove(nic);
        run.vfs.leaving.remove(nic);
        self.free(nic, &stored);
        self.save_run();
        // A NIC that is not wanted any more has waited for this.
        self.look();
    }

    /// All VFs of a VM that is gone.
    pub(super) fn release_all(&self, vfs: &BTreeMap<Name, StoredVf>) {
        for (nic, stored) in vfs {
            self.free(nic, stored);
        }
    }

    fn free(&self, nic: &Name, stored: &StoredVf) {
        let Some(vf) = stored.place() else { return };
        let vm = &self.entry.name;
        if let Err(error) = self.shared.set_vf(&vf, for_nobody) {
            tracing::warn!(%vm, %nic, error, "cannot remove the NIC's address from a VF");
        }
        if let Err(error) = self.shared.vms.parts.host.take_vf(vf.address) {
            tracing::warn!(%vm, %nic, %error, "cannot return a VF to the host");
        }
        self.report(VfReport::Released { nic: nic.clone(), vf });
    }

    /// NICs leave their VFs because the VM leaves, or may have them again because it stays.
    pub(super) fn set_vfs_moving(&self, is_moving: bool) {
        for nic in self.run.iter().flat_map(|run| &run.stored.standbys) {
            self.report(VfReport::Migrating { nic: nic.clone(), is_moving });
        }
    }

    /// Whether the VM has VFs, or somebody has not let go of one yet.
    pub(super) fn has_vfs(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.stored.vfs.is_empty())
    }

    /// Looks whether a VM has the VFs that it was given before this daemon; the control thread
    /// takes it that it does.
    pub(super) fn find_vfs(&mut self) {
        let Some(run) = &mut self.run else { return };
        let vm = run.vm.clone();
        if run.has_standbys() {
            run.vfs.ask_at = Some(Instant::now());
        }
        for (nic, stored) in run.stored.vfs.clone() {
            let Some(vf) = stored.place() else { continue };
            // One that does not answer has it: it is not given to somebody else.
            let has_vf = vm.standby(nic.as_str()).map_or(true, |standby| standby.has_vf);
            if !has_vf {
                let reason = "the VF was unplugged while no daemon was running".to_owned();
                self.report(VfReport::Failed { nic: nic.clone(), vf, reason });
                self.release(&nic);
            } else if let Some(run) = &mut self.run {
                run.vfs.takers.insert(nic);
            }
        }
    }

    /// Asks for what QEMU does not tell by itself: whether guests take VFs, and have them.
    pub(super) fn look_at_vfs(&mut self, now: Instant) {
        let is_due = |run: &Run| run.vfs.ask_at.is_some_and(|at| at <= now);
        if self.run.as_ref().is_some_and(is_due) {
            self.ask_for_vfs();
        }
    }

    pub(super) fn ask_for_vfs(&mut self) {
        // What comes from another node is not this one's yet, and what was handed over is not any
        // more: none of them is given anything.
        let is_here = self.moving.is_none();
        let Some(run) = &mut self.run else { return };
        let (vm, mut gone, mut reports) = (run.vm.clone(), Vec::new(), Vec::new());
        let before = run.vfs.takers.len();
        for nic in run.stored.standbys.intersection(&run.stored.nics) {
            let is_known = run.vfs.takers.contains(nic);
            if is_known && !run.vfs.offered.contains_key(nic) && !run.vfs.leaving.contains_key(nic)
            {
                continue;
            }
            let Ok(Standby { is_taken, has_vf }) = vm.standby(nic.as_str()) else { continue };
            if is_taken && is_here {
                run.vfs.takers.insert(nic.clone());
            }
            if let Some(vf) = run.vfs.offered.get(nic).filter(|_| has_vf).cloned() {
                run.vfs.offered.remove(nic);
                reports.push(VfReport::Ready { nic: nic.clone(), vf });
            }
            if run.vfs.leaving.contains_key(nic) {
                if has_vf {
                    // A guest that was not ready to hear of it is told again.
                    let _ = vm.tell(&VmCommand::Unplug(VmDevice::Vf(nic.to_string())));
                } else {
                    gone.push(nic.clone());
                }
            }
        }
        let waits = run.stored.standbys.iter().any(|nic| !run.vfs.takers.contains(nic))
            || !run.vfs.offered.is_empty()
            || !run.vfs.leaving.is_empty();
        run.vfs.ask_at = waits.then(|| Instant::now() + ASK_AGAIN);
        let has_changed = run.vfs.takers.len() != before;
        reports.into_iter().for_each(|report| self.report(report));
        gone.iter().for_each(|nic| self.release(nic));
        if has_changed {
            self.publish_again();
        }
    }
}
