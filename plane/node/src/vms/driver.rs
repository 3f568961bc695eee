//! The thread that talks to one VM.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ErrorCode, HostConfig, StopVmRequest, VmConfig, VmState};
use suimon_ports::{
    StateStore, Vm, VmCommand, VmDevice, VmError, VmErrorKind, VmIdentity, VmObserver, VmRunState,
};

use super::VmEntry;
use super::entry::RunView;
use super::inbox::{Ear, Heard, Message, News};
use super::records::{StoredRun, StoredVm, save_vm};
use super::spec::{boot, vm_spec};
use super::texts;
use super::work::VmWork;
use crate::events::Draft;
use crate::operations::OperationHandle;
use crate::shared::Shared;

/// A VM that does not answer is asked again so often.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// Resets are told at most this often: a guest decides how often there is one.
const RESETS_EVERY: Duration = Duration::from_secs(10);

/// See the module.
pub(super) struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) store: Arc<dyn StateStore>,
    pub(super) entry: Arc<VmEntry>,
    pub(super) run: Option<Run>,
    /// A VM that runs as far as is known, and has not answered yet.
    pub(super) lost: Option<Lost>,
    /// Counts runs, so that news of one that has ended are not taken for its successor's.
    pub(super) runs: u64,
    pub(super) stopping: Option<Stopping>,
    pub(super) reset_told: Option<Instant>,
}

/// A VM that runs.
pub(super) struct Run {
    pub(super) vm: Arc<dyn Vm>,
    pub(super) stored: StoredRun,
    /// Devices that the guest was asked to let go of.
    pub(super) leaving: BTreeSet<VmDevice>,
    /// Devices and CPUs that it could not be given or could not be freed of; not tried again.
    pub(super) refused: BTreeSet<String>,
}

/// A VM that does not answer.
pub(super) struct Lost {
    pub(super) stored: StoredRun,
    pub(super) identity: VmIdentity,
    ask_at: Instant,
}

/// A guest that was asked to turn itself off.
pub(super) struct Stopping {
    operation: Option<OperationHandle>,
    until: Instant,
    request: StopVmRequest,
}

impl Driver {
    /// Drives the VM until it is told to leave it.
    pub(super) fn drive(mut self, left: Option<(StoredRun, Option<VmIdentity>)>) {
        if let Some((stored, identity)) = left {
            self.find_again(stored, identity);
        }
        loop {
            match self.entry.inbox.take(self.deadline()) {
                Heard::News(news) => self.handle_news(news),
                Heard::Time => self.handle_time(),
                Heard::Message(Message::Work(work, operation)) => self.begin(work, operation),
                Heard::Message(Message::Look) => self.look(),
                Heard::Message(Message::Leave) => break,
                Heard::Message(Message::Delete) => {
                    self.delete();
                    break;
                }
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let stopping = self.stopping.as_ref().map(|stopping| stopping.until);
        let lost = self.lost.as_ref().map(|lost| lost.ask_at);
        stopping.into_iter().chain(lost).min()
    }

    fn handle_time(&mut self) {
        let now = Instant::now();
        if self.stopping.as_ref().is_some_and(|stopping| stopping.until <= now) {
            self.give_up_stopping();
        }
        if let Some(lost) = self.lost.take_if(|lost| lost.ask_at <= now) {
            self.find_again(lost.stored, Some(lost.identity));
        }
    }

    fn begin(&mut self, work: VmWork, operation: Option<OperationHandle>) {
        if operation.as_ref().is_some_and(|operation| !operation.begin()) {
            return;
        }
        let state = self.entry.view().state;
        let done = work.check(&self.entry.name, state).and_then(|()| match work {
            VmWork::Start => self.start(),
            VmWork::Pause => self.tell(&VmCommand::Pause),
            VmWork::Resume => self.tell(&VmCommand::Resume),
            VmWork::Reset => self.tell(&VmCommand::Reset),
            VmWork::Kill => self.kill(),
            VmWork::Stop(_) => self.tell(&VmCommand::PowerButton),
        });
        if let (VmWork::Stop(request), Ok(())) = (work, &done) {
            let until = Instant::now() + Duration::from_secs(request.seconds);
            if let Some(operation) = &operation {
                operation.step_aside();
                operation.progress(0, 1, "wait until the guest has turned itself off");
            }
            self.entry.view().state = VmState::Stopping;
            self.stopping = Some(Stopping { operation, until, request });
            return;
        }
        if let Some(operation) = operation {
            operation.end(&done);
        }
    }

    fn start(&mut self) -> Result<(), ApiError> {
        let desired = self.shared.desired();
        let Some(vm) = desired.config.vm(self.entry.name.as_str()).cloned() else {
            return Err(self.error(ErrorCode::NotFound, "the VM is not desired any more"));
        };
        self.entry.view().state = VmState::Starting;
        let started = self.start_as(&desired.config, vm);
        if let Err(error) = &started {
            let mut view = self.entry.view();
            (view.state, view.reason) = (VmState::Stopped, Some(error.message.clone()));
            drop(view);
            self.save(None);
            self.append(texts::not_started(&self.entry, &error.message));
        }
        started
    }

    fn start_as(&mut self, config: &HostConfig, vm: VmConfig) -> Result<(), ApiError> {
        let host = self.shared.vms.parts.host.clone();
        let Some(boot) = boot(&vm, host.as_ref()) else {
            let text = "the host has no UEFI firmware for VMs; install it (on Debian the package \
                        ovmf), or set firmware = \"bios\"";
            return Err(self.error(ErrorCode::DeviceMissing, text).field("firmware"));
        };
        let spec = vm_spec(config, &vm, &self.entry, boot);
        let mut stored = StoredRun {
            folder: spec.folder.clone(),
            process: None,
            started_unix_ms: (self.shared.clock)(),
            nics: vm.nics.iter().cloned().collect(),
            disks: vm.disks.iter().cloned().collect(),
            as_started: vm,
        };
        host.prepare(&spec.folder, spec.user).map_err(|error| self.told(&error))?;
        host.probe(&spec).map_err(|error| self.told(&error))?;
        // A daemon that is killed from here on finds by this what it has started.
        if !self.save(Some(&stored)) {
            let text = "the state store takes nothing, and a VM that it does not know would be \
                        lost with the daemon; see its log";
            return Err(self.error(ErrorCode::HostError, text));
        }
        self.runs += 1;
        let ear = Arc::new(Ear { entry: self.entry.clone(), run: self.runs });
        let vm: Arc<dyn Vm> = host.start(&spec, ear).map_err(|error| self.told(&error))?.into();
        let identity = vm.identity();
        stored.process = Some((identity.process, identity.started));
        self.save(Some(&stored));
        self.append(texts::started(&self.entry, &identity, &vm.facts()));
        self.take_over(vm, stored);
        Ok(())
    }

    /// A VM runs and answers.
    fn take_over(&mut self, vm: Arc<dyn Vm>, stored: StoredRun) {
        let state = vm.facts().state;
        let (leaving, refused) = (BTreeSet::new(), BTreeSet::new());
        self.run = Some(Run { vm, stored, leaving, refused });
        self.publish(in_words(state));
        // What was asked for while it was being started, or while no daemon was there.
        self.look();
    }

    /// Finds a VM again that another daemon has started, or this one, and that did not answer.
    fn find_again(&mut self, stored: StoredRun, identity: Option<VmIdentity>) {
        let Some(identity) = identity else {
            return self.has_ended(
                false,
                "it is not there any more; the host was started anew, \
                                          or the daemon was killed while it started the VM",
            );
        };
        self.runs += 1;
        let ear: Arc<dyn VmObserver> = Arc::new(Ear { entry: self.entry.clone(), run: self.runs });
        let adopted = self.shared.vms.parts.host.adopt(&identity, ear);
        match adopted {
            Ok(vm) => {
                self.append(texts::found(&self.entry, &identity));
                self.take_over(vm.into(), stored);
                self.replug_cut_off();
            }
            Err(VmError { kind: VmErrorKind::Gone, .. }) => {
                self.has_ended(false, "it ended while no daemon was there to see it");
            }
            Err(error) => {
                let mut view = self.entry.view();
                let is_told = view.state == VmState::Lost && view.reason.is_some();
                (view.state, view.reason) = (VmState::Lost, Some(error.text.clone()));
                drop(view);
                if !is_told {
                    self.append(texts::lost(&self.entry, &error.text));
                }
                self.lost = Some(Lost { stored, identity, ask_at: Instant::now() + ASK_AGAIN });
            }
        }
    }

    fn tell(&mut self, command: &VmCommand) -> Result<(), ApiError> {
        let Some(run) = &self.run else {
            return Err(self.error(ErrorCode::Conflict, "the VM does not run"));
        };
        run.vm.tell(command).map_err(|error| self.told(&error))
    }

    fn kill(&mut self) -> Result<(), ApiError> {
        if let Some(run) = &self.run {
            let killed = self.shared.vms.parts.host.kill(&run.vm.identity());
            match killed {
                Ok(()) | Err(VmError { kind: VmErrorKind::Gone, .. }) => {}
                Err(error) => return Err(self.told(&error)),
            }
            self.has_ended(true, "it was killed on request");
            return Ok(());
        }
        // It does not answer, but its process can be ended all the same.
        let Some(lost) = &self.lost else { return Ok(()) };
        let killed = self.shared.vms.parts.host.kill(&lost.identity);
        match killed {
            Ok(()) | Err(VmError { kind: VmErrorKind::Gone, .. }) => {
                self.lost = None;
                self.has_ended(true, "it was killed on request");
                Ok(())
            }
            Err(error) => Err(self.told(&error)),
        }
    }

    /// The guest has not turned itself off in time.
    fn give_up_stopping(&mut self) {
        let Some(stopping) = self.stopping.take() else { return };
        if stopping.request.force {
            // The end of the operation comes with that of the VM.
            self.stopping = Some(stopping);
            if let Err(error) = self.kill() {
                self.end_stopping(&Err(error));
            }
            return;
        }
        let text = format!(
            "the guest has not turned itself off in {} s, and goes on; `suimon vm kill {}` ends it",
            stopping.request.seconds, self.entry.name
        );
        let error = self.error(ErrorCode::HostError, &text);
        self.publish(VmState::Running);
        self.stopping = Some(stopping);
        self.end_stopping(&Err(error));
    }

    fn end_stopping(&mut self, result: &Result<(), ApiError>) {
        if let Some(operation) = self.stopping.take().and_then(|stopping| stopping.operation) {
            operation.end(result);
        }
    }

    fn handle_news(&mut self, news: News) {
        if self.run.is_none() || news.run != self.runs {
            return;
        }
        if let Some((is_orderly, reason)) = news.ended {
            return self.has_ended(is_orderly, &reason);
        }
        if news.is_reset {
            let now = Instant::now();
            let is_due = self.reset_told.is_none_or(|told| now - told >= RESETS_EVERY);
            if is_due {
                self.reset_told = Some(now);
                self.append(texts::reset(&self.entry));
            }
        }
        for device in news.unplugged {
            self.handle_unplugged(&device);
        }
        if let Some(state) = news.state {
            self.handle_state(state);
        }
    }

    fn handle_state(&mut self, state: VmRunState) {
        let before = self.entry.view().state;
        // What ends has its own notice.
        if state == VmRunState::Off {
            return;
        }
        let now = match (state, &self.stopping) {
            (VmRunState::Running, Some(_)) => VmState::Stopping,
            _ => in_words(state),
        };
        if before != now {
            if let Some(draft) = texts::state(&self.entry, before, now) {
                self.append(draft);
            }
            self.publish(now);
        }
    }

    /// The VM's process is gone.
    fn has_ended(&mut self, is_orderly: bool, reason: &str) {
        let was_asked = self.stopping.is_some();
        self.run = None;
        let mut view = self.entry.view();
        view.state = VmState::Stopped;
        view.running = None;
        view.reason = (!is_orderly).then(|| reason.to_owned());
        drop(view);
        self.save(None);
        self.append(texts::ended(&self.entry, is_orderly || was_asked, reason));
        self.end_stopping(&Ok(()));
    }

    /// The VM is not desired any more. It did not run when that was decided.
    fn delete(&mut self) {
        if let Err(error) = self.kill() {
            tracing::error!(vm = %self.entry.name, %error, "a VM that was deleted runs on");
        }
        self.end_stopping(&Ok(()));
    }

    /// Writes down what the next daemon needs. Returns whether it could.
    pub(super) fn save(&self, run: Option<&StoredRun>) -> bool {
        let vm = StoredVm { uuid: self.entry.uuid, user: self.entry.user, run: run.cloned() };
        let saved = save_vm(&self.entry.name, &vm).and_then(|change| self.store.commit(&[change]));
        if let Err(error) = &saved {
            tracing::error!(vm = %self.entry.name, %error, "what runs is not written down");
        }
        saved.is_ok()
    }

    /// Tells everybody what is known of the VM that runs.
    pub(super) fn publish(&self, state: VmState) {
        let running = self.run.as_ref().map(|run| {
            let facts = run.vm.facts();
            RunView {
                process: run.vm.identity().process,
                started_unix_ms: run.stored.started_unix_ms,
                as_started: run.stored.as_started.clone(),
                accelerator: super::status::accelerator(facts.accelerator),
                cpus: facts.cpus,
                qemu_version: facts.qemu_version,
                nics: run.stored.nics.clone(),
                disks: run.stored.disks.clone(),
                refused: run.refused.clone(),
                vm: run.vm.clone(),
            }
        });
        let mut view = self.entry.view();
        view.state = state;
        view.reason = None;
        view.running = running;
    }

    pub(super) fn append(&self, draft: Draft) {
        self.shared.events.append(vec![draft]);
    }

    fn error(&self, code: ErrorCode, text: &str) -> ApiError {
        ApiError::new(code, text).about(self.entry.label())
    }

    /// A VM's refusal in the API's words.
    fn told(&self, error: &VmError) -> ApiError {
        let code = match error.kind {
            VmErrorKind::Host | VmErrorKind::Silent => ErrorCode::HostError,
            VmErrorKind::Running | VmErrorKind::Gone => ErrorCode::Conflict,
            VmErrorKind::Refused => ErrorCode::Unsupported,
        };
        self.error(code, &error.text)
    }
}

/// What a VM does, in the API's words.
const fn in_words(state: VmRunState) -> VmState {
    match state {
        VmRunState::Running => VmState::Running,
        VmRunState::Paused => VmState::Paused,
        VmRunState::Panicked => VmState::Panicked,
        VmRunState::Off => VmState::Stopping,
    }
}
