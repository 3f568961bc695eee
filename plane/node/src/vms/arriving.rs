//! A VM that comes from another node while it runs: this node's side, which answers.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::{
    ApiError, ArrivalRequest, ArrivalState, ErrorCode, MigrationPhase, Name, StoreToken,
    VmMigration, VmState,
};
use suimon_ports::{SendPhase, StoreError, Vm, VmCommand, VmError};

use super::driver::Driver;
use super::inbox::Ear;
use super::records::{StoredMove, StoredRun, StoredVm, save_arrived, save_vm};
use super::spec::standbys;
use super::texts;
use crate::FarLine;
use crate::disks::ServedDisk;
use crate::moving::{ArrivalAnswer, ArrivalCall, Asked, arrival_spec};
use crate::operations::OperationHandle;

/// A VM of which the node that it leaves says nothing is given up after so many
/// of the pauses in which it would ask again.
const SILENCE_MAX: u32 = 120;
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// See the module.
pub(super) struct Arriving {
    id: String,
    from: String,
    is_paused: bool,
    /// Connections by which its disks are written.
    disks: Vec<ServedDisk>,
    /// Its disks that are handed over, and by what their stores are known.
    handed_over: Vec<Name>,
    stores: Vec<StoreToken>,
    heard_at: Instant,
    pub(super) look_at: Instant,
}

impl Driver {
    /// Starts the VM's QEMU, which waits for what comes.
    pub(super) fn begin_arriving(&mut self, request: &ArrivalRequest, operation: &OperationHandle) {
        let waits =
            |of: &StoredMove| matches!(of, StoredMove::Arriving { id, .. } if *id == request.id);
        if self.has_given_up || !self.moving.as_ref().is_some_and(waits) {
            let text = "the migration was cancelled meanwhile";
            return operation.end(&Err(self.error(ErrorCode::Conflict, text)));
        }
        operation.progress(0, 1, "start the VM, which waits for its memory");
        self.append(texts::arrives(&self.entry, &request.from));
        match self.start_waiting(request) {
            Ok(()) => {
                let now = Instant::now();
                self.arriving = Some(Arriving {
                    id: request.id.clone(),
                    from: request.from.clone(),
                    is_paused: request.is_paused,
                    disks: Vec::new(),
                    handed_over: request.handed_over.iter().map(|of| of.name.clone()).collect(),
                    stores: request.stores.clone(),
                    heard_at: now,
                    look_at: now + LOOK_EVERY,
                });
                operation.end(&Ok(()));
            }
            Err(error) => {
                operation.end(&Err(error.clone()));
                self.give_up_arrival(&request.from, &error.message);
            }
        }
    }

    fn start_waiting(&mut self, request: &ArrivalRequest) -> Result<(), ApiError> {
        let desired = self.shared.desired();
        let spec = arrival_spec(&self.shared, &desired.config, request, &self.entry)?;
        let host = self.shared.vms.parts.host.clone();
        let mut stored = StoredRun {
            folder: spec.folder.clone(),
            process: None,
            started_unix_ms: (self.shared.clock)(),
            nics: request.vm.nics.iter().cloned().collect(),
            disks: request.vm.disks.iter().cloned().collect(),
            as_started: request.as_started.clone(),
            standbys: standbys(&spec),
            vfs: BTreeMap::new(),
            is_frozen: false,
            is_held: request.is_paused,
        };
        if !self.save(Some(&stored)) {
            let text = "the state store cannot be written; see the log of the daemon";
            return Err(self.error(ErrorCode::HostError, text));
        }
        self.runs += 1;
        let ear = Arc::new(Ear { entry: self.entry.clone(), run: self.runs });
        let vm: Arc<dyn Vm> = host.start(&spec, ear).map_err(|error| self.told(&error))?.into();
        let identity = vm.identity();
        stored.process = Some((identity.process, identity.started));
        let is_written = self.save(Some(&stored));
        self.take_over(vm, stored, is_written);
        self.publish(VmState::Arriving);
        Ok(())
    }

    /// Answers the node that the VM leaves.
    pub(super) fn answer_arrival(&mut self, (call, answer): Asked) {
        // While it was asked, what it asks about may have been settled.
        let settled = match &self.moving {
            None => Some(ArrivalState::Active),
            Some(_) if self.has_given_up => Some(ArrivalState::Abandoned),
            Some(_) => None,
        };
        if let (Some(state), false) = (settled, matches!(call, ArrivalCall::Line(_))) {
            let _ = answer.try_send(Ok(ArrivalAnswer::State(state)));
            return;
        }
        let answered = match (call, &mut self.arriving) {
            (ArrivalCall::Line(FarLine::Memory), Some(arriving)) => {
                arriving.heard_at = Instant::now();
                self.memory_line().map(ArrivalAnswer::Line)
            }
            (ArrivalCall::Line(FarLine::Disk(disk)), Some(arriving)) => {
                arriving.heard_at = Instant::now();
                self.disk_line(&disk).map(ArrivalAnswer::Line)
            }
            (ArrivalCall::Ask, Some(arriving)) => {
                arriving.heard_at = Instant::now();
                Ok(ArrivalAnswer::State(ArrivalState::Waiting))
            }
            (ArrivalCall::Ask, None) => Ok(ArrivalAnswer::State(ArrivalState::Waiting)),
            (ArrivalCall::Activate, Some(_)) => self.activate().map(ArrivalAnswer::State),
            // Also before its QEMU was started.
            (ArrivalCall::Abandon, _) => {
                if let Some(StoredMove::Arriving { from, .. }) = self.moving.clone() {
                    self.give_up_arrival(&from, "the source node has cancelled the migration");
                }
                Ok(ArrivalAnswer::State(ArrivalState::Abandoned))
            }
            (_, None) => {
                let text = "the VM is not ready yet; retry";
                Err(self.error(ErrorCode::Conflict, text))
            }
        };
        let _ = answer.try_send(answered);
    }

    /// One end of a line, of which QEMU or the disk has the other.
    fn line(&self) -> Result<(OwnedFd, OwnedFd), ApiError> {
        let pair = UnixStream::pair().map_err(|error| {
            let text = format!("the connection for the VM's memory cannot be opened: {error}");
            self.error(ErrorCode::HostError, &text)
        })?;
        Ok((pair.0.into(), pair.1.into()))
    }

    fn memory_line(&self) -> Result<OwnedFd, ApiError> {
        let Some(run) = &self.run else { return Err(self.not_there()) };
        let (near, far) = self.line()?;
        run.vm.receive(far).map_err(|error| self.told(&error))?;
        Ok(near)
    }

    fn disk_line(&mut self, disk: &Name) -> Result<OwnedFd, ApiError> {
        let is_its_own = self.run.as_ref().is_some_and(|run| run.stored.disks.contains(disk));
        if !is_its_own {
            let text = format!("disk/{disk} is not a disk of the VM");
            return Err(self.error(ErrorCode::NotFound, &text));
        }
        let (near, far) = self.line()?;
        let served = ServedDisk::start(&self.shared, disk, far)?;
        if let Some(arriving) = &mut self.arriving {
            arriving.disks.push(served);
        }
        Ok(near)
    }

    fn not_there(&self) -> ApiError {
        self.error(ErrorCode::Conflict, "the VM's process does not exist any more")
    }

    /// The VM is this node's from now on.
    fn activate(&mut self) -> Result<ArrivalState, ApiError> {
        let (Some(arriving), Some(run)) = (&mut self.arriving, &self.run) else {
            return Err(self.not_there());
        };
        let vm = run.vm.clone();
        let status = vm.send_status();
        if !matches!(&status, Ok(status) if status.phase == SendPhase::Done) {
            let phase = status.map(|status| status.phase);
            let text = format!("the VM's memory was not received completely ({phase:?})");
            return Err(self.error(ErrorCode::Conflict, &text));
        }
        // Whatever was still on its way to its disks has come before its CPUs run.
        for disk in &arriving.disks {
            disk.end()?;
        }
        let handed_over = arriving.handed_over.clone();
        let recorded = self.open_handed_over().and_then(|()| {
            self.record_activation().map_err(|error| crate::apply::store_error(&error))
        });
        if let Err(error) = recorded {
            // The node that it leaves opens them again when it is told that they are not wanted.
            self.close_handed_over(&handed_over);
            return Err(error);
        }
        handed_over.iter().for_each(|disk| self.shared.keep_awaited(disk));
        let Some(arriving) = self.arriving.take() else { return Err(self.not_there()) };
        self.moving = None;
        self.entry.view().moving = None;
        self.tell_where();
        if !arriving.is_paused {
            self.try_it(&*vm, &VmCommand::Resume);
        }
        self.try_it(&*vm, &VmCommand::Announce);
        self.append(texts::arrived(&self.entry, &arriving.from));
        self.follow_space_again();
        self.ask_for_vfs();
        self.look();
        Ok(ArrivalState::Active)
    }

    /// Opens the disks that the other node has closed, if their stores are still the same.
    fn open_handed_over(&self) -> Result<(), ApiError> {
        let Some(arriving) = &self.arriving else { return Err(self.not_there()) };
        let desired = self.shared.desired();
        self.shared.check_marks(&desired.config, &arriving.stores, &arriving.from)?;
        arriving.handed_over.iter().try_for_each(|disk| self.shared.open_awaited(disk))
    }

    fn close_handed_over(&self, disks: &[Name]) {
        for disk in disks {
            if let Err(error) = self.shared.close_awaited(disk) {
                tracing::error!(%disk, %error, "a disk of another node is closed later");
            }
        }
    }

    /// It is this node's VM, for good or ill; what it does not do is told.
    fn try_it(&self, vm: &dyn Vm, command: &VmCommand) {
        let told: Result<(), VmError> = vm.tell(command);
        if let Err(error) = told {
            tracing::error!(
                vm = %self.entry.name,
                %error,
                ?command,
                "cannot end the VM of a failed migration"
            );
        }
    }

    fn record_activation(&self) -> Result<(), StoreError> {
        let (Some(arriving), Some(run)) = (&self.arriving, &self.run) else { return Ok(()) };
        let stored = StoredVm {
            uuid: self.entry.uuid,
            user: self.entry.user,
            run: Some(run.stored.clone()),
            moving: None,
        };
        let now = (self.shared.clock)();
        let mut changes = save_arrived(self.store.as_ref(), &arriving.id, now)?;
        changes.push(save_vm(&self.entry.name, &stored)?);
        self.store.commit(&changes)
    }

    /// Whether the VM that comes is given up: its process has ended, or nobody asks for it.
    pub(super) fn look_at_arriving(&mut self, now: Instant) {
        let Some(arriving) = self.arriving.as_mut().filter(|of| of.look_at <= now) else { return };
        arriving.look_at = now + LOOK_EVERY;
        let is_copied = !arriving.disks.is_empty();
        let status = self.run.as_ref().map(|run| run.vm.send_status());
        let is_sent = matches!(&status, Some(Ok(status)) if status.phase == SendPhase::Copying);
        let phase = match (is_copied, is_sent) {
            (_, true) => MigrationPhase::CopyingMemory,
            (true, false) => MigrationPhase::CopyingDisks,
            (false, false) => MigrationPhase::Preparing,
        };
        let (from, silent) = (arriving.from.clone(), now - arriving.heard_at);
        if let Some(view) = &mut self.entry.view().moving {
            view.phase = phase;
        }
        if self.run.is_none() {
            self.give_up_arrival(&from, "its QEMU process ended; its log may have the reason");
        } else if silent >= self.ask_far_again * SILENCE_MAX {
            let text = format!("the source node has sent nothing for {} s", silent.as_secs());
            self.give_up_arrival(&from, &text);
        }
    }

    /// The VM will not be this node's. From here on nothing can make it so: who asks finds no VM
    /// that waits.
    pub(super) fn give_up_arrival(&mut self, from: &str, reason: &str) {
        if std::mem::replace(&mut self.has_given_up, true) {
            return;
        }
        self.arriving = None;
        self.entry.view().moving = None;
        if let Err(error) = self.kill_quietly() {
            tracing::error!(
                vm = %self.entry.name,
                %error,
                "a VM of a failed migration is still there"
            );
        }
        if let Some(StoredMove::Arriving { handed_over, .. }) = &self.moving {
            self.close_handed_over(handed_over);
        }
        self.append(texts::did_not_arrive(&self.entry, from, reason));
        self.depart(None);
    }

    /// What a daemon that has died left of a VM that comes: what was on its way is lost.
    pub(super) fn take_up_arrival(&mut self, left: Option<StoredRun>) {
        let Some(StoredMove::Arriving { from, .. }) = self.moving.clone() else { return };
        if let Some(stored) = left {
            let identity = self.identity_of(&stored);
            if let Ok(Some(identity)) = identity {
                let _ = self.shared.vms.parts.host.kill(&identity);
            }
        }
        self.give_up_arrival(&from, "the daemon ended during the migration");
    }

    fn kill_quietly(&mut self) -> Result<(), VmError> {
        let Some(run) = self.run.take() else { return Ok(()) };
        match self.shared.vms.parts.host.kill(&run.vm.identity()) {
            Err(error) if error.kind == suimon_ports::VmErrorKind::Gone => Ok(()),
            result => result,
        }
    }
}

/// What is shown of a VM that comes.
pub(crate) fn arriving_view(request: &ArrivalRequest) -> VmMigration {
    VmMigration {
        id: request.id.clone(),
        leaves: false,
        node: request.from.clone(),
        phase: MigrationPhase::Preparing,
        disk_bytes_copied: 0,
        disk_bytes_left: 0,
        memory_bytes_copied: 0,
        memory_bytes_left: 0,
        disks_copied: copied_disks(request),
        disks_handed_over: request.handed_over.iter().map(|of| of.name.clone()).collect(),
    }
}

/// The disks of a VM that are copied.
pub(super) fn copied_disks(request: &ArrivalRequest) -> Vec<Name> {
    let is_copied = |disk: &Name| request.handed_over.iter().all(|of| of.name != *disk);
    let names = request.disks.iter().map(|disk| &disk.name);
    names.filter(|disk| is_copied(disk)).cloned().collect()
}
