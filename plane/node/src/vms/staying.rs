//! Failed or cancelled outgoing migration: the VM continues on the source node.

use std::time::Instant;

use suimon_contract::{ApiError, ErrorCode, MigrationPhase, Name, VmState};
use suimon_ports::{SendPhase, VmCommand, VmRunState};

use super::driver::Driver;
use super::leaving::{LOOK_WHILE_STILL, Leaving, SWITCH_LIMIT, Stage};
use super::publishing::in_words;
use super::records::{StoredLeave, StoredMove};
use super::texts;
use crate::control::Command;
use crate::disks::DiskToHandOver;

impl Driver {
    /// Ends an outgoing migration with `error`, and has the VM continue on this node. Blocks until
    /// QEMU has cancelled the migration, at most for `SWITCH_LIMIT`.
    pub(super) fn stay(&mut self, leaving: Leaving, error: ApiError) {
        let Leaving { leave, operation, stage, handed, marks, .. } = leaving;
        // Stops the mirrors before the guest continues.
        drop(stage);
        self.take_back(&leave, handed);
        drop(marks);
        // Restores the switch's tables before the guest continues, so that frames reach it.
        if let Some(moving) = &mut self.entry.view().moving {
            moving.phase = MigrationPhase::Switching;
        }
        self.tell_where();
        self.go_on_here(leave.was_paused);
        self.save_moving(None);
        self.set_vfs_moving(false);
        if let Ok(far) = self.shared.far_node(&leave.to) {
            // Best effort: the destination also abandons an arrival after a silence.
            let _ = far.abandon_arrival(&leave.id);
        }
        self.append(texts::stays(&self.entry, leave.to.as_str(), &error.message));
        let mut view = self.entry.view();
        view.moving = None;
        // A VM that has ended in the meantime stays stopped.
        if self.run.is_none() && self.lost.is_none() {
            view.state = VmState::Stopped;
        }
        drop(view);
        self.follow_space_again();
        if let Some(operation) = operation {
            operation.end(&Err(error));
        }
        // Applies changes that were made during the migration.
        self.look();
    }

    /// Reopens the handed-over disks. The control thread retries failed ones.
    fn take_back(&self, leave: &StoredLeave, handed: Vec<DiskToHandOver>) {
        let bring_back = |disk: &Name, failure| {
            let command = Command::BringBack { disk: disk.clone(), failure };
            if self.control.try_send(command).is_err() {
                tracing::error!(%disk, "a disk that stays here is not retried");
            }
        };
        if handed.is_empty() {
            // A previous daemon may have closed them.
            let left = leave.handed_over.iter().filter(|disk| self.shared.end_being_away(disk));
            left.for_each(|disk| bring_back(disk, None));
        }
        for disk in handed {
            let (name, taken) = (disk.name().clone(), disk.take_back());
            drop(disk);
            if let Err(error) = taken {
                bring_back(&name, Some(error.to_string()));
            }
        }
    }

    /// Cancels QEMU's migration and resumes the CPUs, unless the VM was paused before or waits for
    /// space.
    fn go_on_here(&mut self, was_paused: bool) {
        let Some(vm) = self.run.as_ref().map(|run| run.vm.clone()) else { return };
        let is_over = |phase: &SendPhase| {
            matches!(phase, SendPhase::None | SendPhase::Done | SendPhase::Failed(_))
        };
        let limit = Instant::now() + SWITCH_LIMIT;
        while Instant::now() < limit {
            match vm.send_status() {
                Ok(status) if is_over(&status.phase) => break,
                Ok(_) => {}
                Err(_) => return,
            }
            let _ = vm.tell(&VmCommand::CancelSending);
            std::thread::sleep(LOOK_WHILE_STILL);
        }
        // A VM that waits for space is resumed when there is some.
        let facts = vm.facts();
        if !was_paused && facts.state == VmRunState::Paused && !facts.waits_for_space {
            if let Err(error) = vm.tell(&VmCommand::Resume) {
                tracing::error!(
                    vm = %self.entry.name,
                    %error,
                    "cannot resume a VM after a failed migration"
                );
            }
        }
        let state = vm.facts().state;
        self.publish(in_words(state));
    }

    /// Resumes an outgoing migration that the previous daemon left in progress.
    pub(super) fn take_up_leaving(&mut self) {
        match self.moving.clone() {
            Some(StoredMove::Leaving(leave)) => {
                let text = "the daemon ended during the migration";
                let error = self.error(ErrorCode::HostError, text);
                let leaving = Leaving::new(leave, None, Stage::Rest(Instant::now()));
                self.stay(leaving, error);
            }
            Some(StoredMove::HandedOver(leave)) => {
                let stage = Stage::HandedOver { is_told: false };
                self.leaving = Some(Leaving::new(leave, None, stage));
                self.show_leaving();
            }
            Some(StoredMove::Left(leave)) => {
                let stage = Stage::HandedOver { is_told: true };
                self.entry.view().moving = Some(Leaving::new(leave, None, stage).view());
                self.depart(None);
            }
            Some(StoredMove::Arriving { .. }) | None => {}
        }
    }
}
