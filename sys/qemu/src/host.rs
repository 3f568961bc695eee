//! [`QemuHost`]: starts VMs, and reconnects to running ones.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::AtomicU16;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use suimon_ports::{
    ThreadInit, Vm, VmBoot, VmError, VmErrorKind, VmHost, VmIdentity, VmNotice, VmObserver,
    VmRunState, VmSpec,
};
use suimon_qmp::{
    Command, Greeting, ResultError, RunState, decode_chardevs, decode_cpu_count,
    decode_kvm_enabled, decode_run_state,
};
use suimon_quantity::PciAddress;
use suimon_unix_socket::CloseQueue;

use crate::agent::AGENT_PORT;
use crate::client::{LauncherClient, LauncherEvent, ProcessWatch};
use crate::devices::QemuProperties;
use crate::migration::prepare_incoming_command;
use crate::monitor::SharedMonitor;
use crate::process_facts;
use crate::session::{Session, SessionParameters};
use crate::spec_check::check_vm;
use crate::vm::{QemuVm, accelerator};
use crate::vm_socket::connect_in;
use crate::wire::Request;

/// File name of the socket of QEMU's monitor, in the VM's folder.
pub(crate) const MONITOR_SOCKET: &str = "qmp.sock";
/// Time limit for QEMU's greeting. QEMU first allocates the VM's memory and connects to all
/// sockets.
const GREETING_LIMIT: Duration = Duration::from_secs(20);
/// Time limit for QEMU to accept the connection to its monitor.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Paths of UEFI firmware for x86 on Debian, Fedora and Arch, each as code and initial variables.
const UEFI_FILES: [(&str, &str); 4] = [
    ("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"),
    ("/usr/share/OVMF/OVMF_CODE.fd", "/usr/share/OVMF/OVMF_VARS.fd"),
    ("/usr/share/edk2/ovmf/OVMF_CODE.fd", "/usr/share/edk2/ovmf/OVMF_VARS.fd"),
    ("/usr/share/edk2/x64/OVMF_CODE.4m.fd", "/usr/share/edk2/x64/OVMF_VARS.4m.fd"),
];
/// Time limit for the launcher's report on a process that has closed its monitor.
const REASON_LIMIT: Duration = Duration::from_secs(6);

/// Maximum number of threads that close connections to monitors (before Linux 6.16).
const CLOSING_MAX: usize = 64;

/// VM host that starts VMs through the launcher, and reconnects to running ones.
pub struct QemuHost {
    client: LauncherClient,
    /// Connection to the launcher. A launcher that the daemon has started exits when it has no
    /// connection and no VM.
    _kept: OwnedFd,
    thread_start: ThreadInit,
    /// Queue that closes connections to monitors.
    closes: CloseQueue,
}

impl QemuHost {
    /// Connects to the launcher that listens at `launcher`. Each VM gets a thread that reads from
    /// its QEMU and calls `thread_start` first.
    ///
    /// # Errors
    /// No launcher responds at that path.
    pub fn connect(launcher: &Path, thread_start: ThreadInit) -> Result<Self, VmError> {
        let client = LauncherClient::new(launcher);
        let connection = client.connect()?;
        let closes = CloseQueue::new(CLOSING_MAX);
        Ok(Self { client, _kept: connection, thread_start, closes })
    }

    /// Connects to a running process, queries its state, and then sends the command `begin`, if
    /// any.
    fn attach(
        &self,
        identity: &VmIdentity,
        observer: Arc<dyn VmObserver>,
        begin: Option<Command>,
    ) -> Result<QemuVm, VmError> {
        let name = identity.name.as_str();
        let host = |error: io::Error| {
            let text = format!("QEMU's monitor cannot be reached: {error}");
            VmError::new(VmErrorKind::Host, text)
        };
        let watch = self.client.watch(identity)?;
        let stream = match connect_in(&identity.folder, MONITOR_SOCKET, CONNECT_LIMIT) {
            Ok(stream) => stream,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                let text = format!("QEMU's monitor cannot be reached: {error}");
                return Err(VmError::new(VmErrorKind::Timeout, text));
            }
            Err(error) => return Err(Self::why_not(&watch).unwrap_or_else(|| host(error))),
        };
        let thread_start = Arc::clone(&self.thread_start);
        let closes = &self.closes;
        let parts =
            SessionParameters { name, stream, watch, observer, thread_start, close_queue: closes };
        let (session, greeted) = Session::start(parts).map_err(host)?;
        let shared = Arc::clone(session.shared());
        let negotiated = negotiate(&shared, &greeted, begin);
        let (machine, cpus) = negotiated.map_err(|error| disconnect_error(&shared, error))?;
        Ok(QemuVm {
            identity: identity.clone(),
            machine,
            user: process_facts::process_user(identity.pid),
            session,
            cpus: AtomicU16::new(u16::try_from(cpus).unwrap_or(u16::MAX)),
            hot_plug_lock: Mutex::new(()),
            agent_session: Mutex::default(),
            console_close_queue: CloseQueue::default(),
        })
    }

    /// Returns an error that describes the end of the process; `None` if the process runs. Called
    /// if no process listens on the monitor.
    fn why_not(watch: &ProcessWatch) -> Option<VmError> {
        match watch.wait_timeout(REASON_LIMIT)? {
            LauncherEvent::Ended(exit) => Some(VmError::new(VmErrorKind::NotRunning, exit.text())),
            LauncherEvent::ConnectionEnded => None,
        }
    }
}

fn invalid_reply(error: ResultError) -> VmError {
    VmError::new(VmErrorKind::Refused, error.to_string())
}

/// Performs the initial exchange with a VM's monitor, and sends the command `begin`, if any.
/// Returns the machine and its number of CPUs.
fn negotiate(
    shared: &SharedMonitor,
    greeted: &Receiver<Greeting>,
    begin: Option<Command>,
) -> Result<(QemuProperties, usize), VmError> {
    let greeting = greeted.recv_timeout(GREETING_LIMIT).map_err(|error| match error {
        RecvTimeoutError::Disconnected => {
            VmError::new(VmErrorKind::NotRunning, shared.end_reason())
        }
        RecvTimeoutError::Timeout => {
            let seconds = GREETING_LIMIT.as_secs();
            let text = format!(
                "QEMU has not replied for {seconds} s; it may wait for a socket of a NIC or disk \
                 without a listener, or its monitor may have another client"
            );
            VmError::new(VmErrorKind::Timeout, text)
        }
    })?;
    shared.request(&Command::Capabilities)?;
    let state = decode_run_state(&shared.request(&Command::QueryStatus)?).map_err(invalid_reply)?;
    let is_kvm = decode_kvm_enabled(&shared.request(&Command::QueryKvm)?).map_err(invalid_reply)?;
    let cpus =
        decode_cpu_count(&shared.request(&Command::QueryCpusFast)?).map_err(invalid_reply)?;
    let chardevs =
        decode_chardevs(&shared.request(&Command::QueryChardev)?).map_err(invalid_reply)?;
    let agent = chardevs.iter().find(|chardev| chardev.id == AGENT_PORT);
    let waits_for_space = state == RunState::IoError;
    let state = match state {
        RunState::Running => VmRunState::Running,
        RunState::GuestPanicked => VmRunState::Panicked,
        RunState::Shutdown => VmRunState::Off,
        RunState::Paused | RunState::Prelaunch | RunState::IoError | RunState::Other(_) => {
            VmRunState::Paused
        }
    };
    shared.set_known_state(
        state,
        waits_for_space,
        agent.is_some_and(|agent| agent.is_frontend_open),
    );
    if let Some(begin) = begin {
        shared.request(&begin)?;
    }
    let accelerator = accelerator(is_kvm);
    Ok((QemuProperties { version: greeting.version, accelerator }, cpus))
}

/// Replaces `error` by one with the reason of the process's end, if the process has ended. The
/// launcher reports the end shortly after the monitor was closed.
fn disconnect_error(shared: &SharedMonitor, error: VmError) -> VmError {
    if error.kind != VmErrorKind::NotRunning {
        return error;
    }
    shared.wait_end(REASON_LIMIT);
    VmError::new(VmErrorKind::NotRunning, shared.end_reason())
}

/// Observer of a VM that is being started. Keeps the notice of the VM's end, and discards all other
/// notices. If the VM ends during the start, the start returns that as an error.
#[derive(Default)]
struct StartObserver {
    state: Mutex<Passed>,
}

#[derive(Default)]
struct Passed {
    observer: Option<Arc<dyn VmObserver>>,
    end: Option<VmNotice>,
}

impl StartObserver {
    fn lock(&self) -> MutexGuard<'_, Passed> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forwards all later notices to `observer`. If the VM has ended already, reports that first.
    fn pass(&self, observer: Arc<dyn VmObserver>) {
        let mut state = self.lock();
        if let Some(end) = state.end.take() {
            observer.handle_notice(end);
        }
        state.observer = Some(observer);
    }
}

impl VmObserver for StartObserver {
    fn handle_notice(&self, notice: VmNotice) {
        let mut state = self.lock();
        match &state.observer {
            Some(observer) => observer.handle_notice(notice),
            None if matches!(notice, VmNotice::Ended { .. }) => state.end = Some(notice),
            None => {}
        }
    }
}

impl VmHost for QemuHost {
    fn uefi_firmware(&self) -> Option<VmBoot> {
        let is_there = |files: &&(&str, &str)| Path::new(files.0).exists();
        let (code, variables) = UEFI_FILES.iter().find(is_there)?;
        Some(VmBoot::Uefi { code: code.into(), variables: variables.into() })
    }

    fn cpu_flags(&self) -> Vec<String> {
        process_facts::cpu_flags(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
    }

    fn running_vms(&self) -> Result<Vec<VmIdentity>, VmError> {
        self.client.list()
    }

    fn kill(&self, identity: &VmIdentity) -> Result<(), VmError> {
        self.client.execute(Request::Kill(identity.clone()))
    }

    fn probe(&self, spec: &VmSpec) -> Result<(), VmError> {
        check_vm(spec)?;
        self.client.execute(Request::Probe(Box::new(spec.clone())))
    }

    fn create_folder(&self, folder: &Path, user: u32) -> Result<(), VmError> {
        self.client.execute(Request::Prepare { folder: folder.to_owned(), user })
    }

    fn start(&self, spec: &VmSpec, observer: Arc<dyn VmObserver>) -> Result<Box<dyn Vm>, VmError> {
        check_vm(spec)?;
        let started = self.client.start(spec)?;
        for remark in &started.remarks {
            tracing::warn!(vm = spec.name, "{remark}");
        }
        let threshold = Arc::new(StartObserver::default());
        let begin = if spec.migration_requirements.is_some() {
            prepare_incoming_command()
        } else {
            Command::Cont
        };
        let attached = self.attach(&started.identity, threshold.clone(), Some(begin));
        match attached {
            Ok(vm) => {
                threshold.pass(observer);
                Ok(Box::new(vm))
            }
            Err(error) => {
                let _ = self.client.execute(Request::Kill(started.identity));
                // A VM that was never running cannot be lost.
                let is_gone = error.kind == VmErrorKind::NotRunning;
                let kind = if is_gone { VmErrorKind::Host } else { error.kind };
                let text = format!("VM {} did not start: {}", spec.name, error.text);
                Err(VmError::new(kind, text))
            }
        }
    }

    fn remove_folder(&self, folder: &Path) -> Result<(), VmError> {
        self.client.execute(Request::Remove { folder: folder.to_owned() })
    }

    fn assign_vf(
        &self,
        identity: &VmIdentity,
        vf: PciAddress,
        memory_bytes: u64,
    ) -> Result<(), VmError> {
        let identity = identity.clone();
        self.client.execute(Request::AssignVf { identity, vf: vf.to_string(), memory_bytes })
    }

    fn reclaim_vf(&self, vm: &str, vf: PciAddress) -> Result<(), VmError> {
        self.client.execute(Request::RemoveVf { vf: vf.to_string(), vm: vm.to_owned() })
    }

    fn adopt(
        &self,
        identity: &VmIdentity,
        observer: Arc<dyn VmObserver>,
    ) -> Result<Box<dyn Vm>, VmError> {
        self.client.execute(Request::Find(identity.clone()))?;
        let threshold = Arc::new(StartObserver::default());
        let vm = self.attach(identity, threshold.clone(), None).map_err(|error| {
            let text = format!("VM {} was not adopted: {}", identity.name, error.text);
            VmError::new(error.kind, text)
        })?;
        threshold.pass(observer);
        Ok(Box::new(vm))
    }
}
