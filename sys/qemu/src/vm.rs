//! [`QemuVm`]: a running VM, as the port [`Vm`].

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use suimon_ports::{
    GuestInfo, MigrationSpec, MigrationStatus, NicStandbyState, RunningVmStatus, Vm, VmAccelerator,
    VmCommand, VmDevice, VmDiskKind, VmDiskSpec, VmError, VmErrorKind, VmHardware, VmIdentity,
    VmNicSpec, VmRunState,
};
use suimon_qmp::{
    Chardev, Command, DeviceArguments, ReconnectOption, decode_chardevs, decode_cpu_slots,
};
use suimon_quantity::CountedNoun;
use suimon_unix_socket::CloseQueue;

use crate::agent::{self, AgentPort};
use crate::devices::{DeviceAttachment, QemuProperties, disk_id, nic_id, port_id};
use crate::monitor::{REPLY_TIMEOUT, SharedMonitor};
use crate::process_facts;
use crate::qemu_stream::QemuStream;
use crate::session::Session;
use crate::spec_check::{HOT_PLUG_PORTS_MAX, check_disk, check_nic};
use crate::vm_socket::connect_in;

/// File name of the socket of the serial console, in the VM's folder.
pub(crate) const CONSOLE_SOCKET: &str = "console.sock";
const CONSOLE_CHARDEV: &str = "console";
/// Time limit for QEMU to accept a connection to the console.
const CONSOLE_LIMIT: Duration = Duration::from_secs(2);

/// Running VM, controlled through its QMP monitor.
pub(crate) struct QemuVm {
    pub(crate) identity: VmIdentity,
    pub(crate) machine: QemuProperties,
    pub(crate) user: Option<u32>,
    pub(crate) session: Session,
    pub(crate) cpus: AtomicU16,
    /// Locked while a device is hot-plugged or the console is connected.
    pub(crate) hot_plug_lock: Mutex<()>,
    /// Locked during a session with the guest agent. Contains the queue that closes the previous
    /// session's connection.
    pub(crate) agent_session: Mutex<CloseQueue>,
    /// Queue that closes console connections that could not be used.
    pub(crate) console_close_queue: CloseQueue,
}

fn refused(text: impl Into<String>) -> VmError {
    VmError::new(VmErrorKind::Refused, text)
}

pub(crate) fn invalid_reply(error: suimon_qmp::ResultError) -> VmError {
    refused(error.to_string())
}

impl QemuVm {
    pub(crate) fn shared(&self) -> &Arc<SharedMonitor> {
        self.session.shared()
    }

    pub(crate) fn request(&self, command: &Command) -> Result<serde_json::Value, VmError> {
        self.shared().request(command)
    }

    pub(crate) fn execute_command(&self, command: &Command) -> Result<(), VmError> {
        self.request(command).map(drop)
    }

    fn reset(&self) -> Result<(), VmError> {
        let has_panicked = self.shared().known_state().state == VmRunState::Panicked;
        self.execute_command(&Command::SystemReset)?;
        // A VM that was stopped by a guest panic continues; a VM that a caller has paused does not.
        if has_panicked { self.execute_command(&Command::Cont) } else { Ok(()) }
    }

    fn quit(&self) -> Result<(), VmError> {
        match self.request(&Command::Quit) {
            // The process may end before the reply.
            Ok(_) | Err(VmError { kind: VmErrorKind::NotRunning, .. }) => {}
            Err(error) => return Err(error),
        }
        if self.shared().wait_end(REPLY_TIMEOUT) {
            Ok(())
        } else {
            Err(self.shared().reply_timeout_error("quit"))
        }
    }

    /// Returns the id of the first root port without a device.
    fn free_port(&self) -> Result<String, VmError> {
        self.find_free_port(0..HOT_PLUG_PORTS_MAX)
    }

    /// Returns the id of the first of these root ports without a device.
    pub(crate) fn find_free_port(
        &self,
        numbers: impl Iterator<Item = usize>,
    ) -> Result<String, VmError> {
        let started_at = Instant::now();
        for number in numbers {
            self.shared().check_time(started_at, "a query of the ports")?;
            if self.device_behind_port(number)?.is_none() {
                return Ok(port_id(number));
            }
        }
        let name = &self.identity.name;
        Err(refused(format!(
            "all {HOT_PLUG_PORTS_MAX} ports of VM {name} are in use; unplug a device first"
        )))
    }

    /// Adds the objects of a device and then the device. If a step fails, removes what was added.
    fn plug(&self, attachment: &DeviceAttachment) -> Result<(), VmError> {
        let mut added = Vec::new();
        let mut result = Ok(());
        for backend in &attachment.backends {
            result = self.execute_command(&backend.add_command());
            if result.is_err() {
                break;
            }
            added.push(backend.remove_command());
        }
        if result.is_ok() {
            result = self.execute_command(&Command::DeviceAdd(attachment.device.clone()));
        }
        if result.is_err() {
            for command in added.iter().rev() {
                let _ = self.execute_command(command);
            }
        }
        result
    }

    fn plug_nic(&self, nic: &VmNicSpec) -> Result<(), VmError> {
        check_nic(nic)?;
        check_socket(&nic.socket)?;
        let _plugging = self.hot_plug_lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.plug(&self.machine.nic(nic, &self.free_port()?))
    }

    fn plug_disk(&self, disk: &VmDiskSpec) -> Result<(), VmError> {
        check_disk(disk)?;
        let VmDiskKind::Virtio { socket, queues } = &disk.kind else {
            let name = &disk.name;
            let text = format!(
                "disk {name}: IDE and SATA disks cannot be hot-plugged; restart the VM, or set \
                 controller = \"virtio\""
            );
            return Err(refused(text));
        };
        check_socket(socket)?;
        let _plugging = self.hot_plug_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let port = self.free_port()?;
        self.plug(&self.machine.virtio_disk(&disk.name, socket, *queues, &port))
    }

    pub(crate) fn unplug(&self, id: String) -> Result<(), VmError> {
        match self.execute_command(&Command::DeviceDel { id }) {
            // The guest was already requested to release the device and has not done so yet.
            Err(error) if error.text.contains("already in the process of unplug") => Ok(()),
            result => result,
        }
    }

    fn set_cpus(&self, cpus: u16) -> Result<(), VmError> {
        let _plugging = self.hot_plug_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = decode_cpu_slots(&self.request(&Command::QueryHotpluggableCpus)?)
            .map_err(invalid_reply)?;
        let occupied: u64 =
            slots.iter().filter(|slot| slot.is_occupied).map(|slot| slot.cpus).sum();
        let max: u64 = slots.iter().map(|slot| slot.cpus).sum();
        let cpus = u64::from(cpus);
        if cpus < occupied {
            let occupied = CountedNoun::new(occupied, "CPU");
            let text = format!(
                "the VM has {occupied}; their number can be reduced only by a restart of the VM"
            );
            return Err(refused(text));
        }
        if cpus > max {
            let max = CountedNoun::new(max, "CPU");
            return Err(refused(format!(
                "the VM was started with a maximum of {max}; raise cpus_max and restart it"
            )));
        }
        let (mut count, started_at) = (occupied, Instant::now());
        for slot in slots.iter().filter(|slot| !slot.is_occupied) {
            if count >= cpus {
                break;
            }
            self.shared().check_time(started_at, "plugging CPUs")?;
            let [socket, core, thread] = slot.socket_core_thread;
            let mut device = DeviceArguments::new(&slot.driver)
                .with("id", format!("cpu-{socket}-{core}-{thread}"));
            for (name, value) in &slot.properties {
                device = device.with(name, value.clone());
            }
            self.execute_command(&Command::DeviceAdd(device))?;
            count += slot.cpus;
            self.cpus.store(u16::try_from(count).unwrap_or(u16::MAX), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Calls `request` for a session with the guest agent, one at a time, because QEMU accepts one
    /// connection.
    fn with_agent<T>(
        &self,
        request: fn(AgentPort<'_>) -> Result<T, VmError>,
    ) -> Result<T, VmError> {
        if !self.shared().known_state().has_agent {
            let text = "no guest agent runs in the guest; install it there (Debian: package \
                        qemu-guest-agent)";
            return Err(refused(text));
        }
        let closing = self.agent_session.lock().unwrap_or_else(PoisonError::into_inner);
        request(AgentPort { folder: &self.identity.folder, close_queue: &closing })
    }

    fn console_chardev(&self) -> Result<Chardev, VmError> {
        let chardevs =
            decode_chardevs(&self.request(&Command::QueryChardev)?).map_err(invalid_reply)?;
        let console = chardevs.into_iter().find(|chardev| chardev.id == CONSOLE_CHARDEV);
        console.ok_or_else(|| refused(format!("VM {} has no serial console", self.identity.name)))
    }
}

/// Checks that a socket file exists: QEMU would block all other work while it waits for a missing
/// one.
fn check_socket(path: &Path) -> Result<(), VmError> {
    use std::os::unix::fs::FileTypeExt;
    let is_there =
        std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    if is_there {
        return Ok(());
    }
    let path = path.display();
    Err(VmError::new(VmErrorKind::Host, format!("{path} is not a socket with a listener yet")))
}

impl Vm for QemuVm {
    fn identity(&self) -> VmIdentity {
        self.identity.clone()
    }

    fn uptime(&self) -> Duration {
        process_facts::elapsed_since_start(self.identity.started_ticks)
    }

    fn status(&self) -> RunningVmStatus {
        let QemuProperties { version, accelerator } = self.machine;
        RunningVmStatus {
            state: self.shared().known_state().state,
            waits_for_space: self.shared().known_state().waits_for_space,
            accelerator,
            cpus: self.cpus.load(Ordering::Relaxed),
            qemu_version: version.to_string(),
            reconnects_streams: ReconnectOption::for_stream(version) != ReconnectOption::Never,
            has_agent: self.shared().known_state().has_agent,
            uid: self.user,
        }
    }

    fn execute(&self, command: &VmCommand) -> Result<(), VmError> {
        match command {
            VmCommand::Pause => self.execute_command(&Command::Stop),
            VmCommand::Resume => self.execute_command(&Command::Cont),
            VmCommand::Reset => self.reset(),
            VmCommand::PowerButton => self.execute_command(&Command::SystemPowerdown),
            VmCommand::ShutDown => self.with_agent(agent::shut_down),
            VmCommand::Freeze => self.with_agent(agent::freeze).map(drop),
            VmCommand::Thaw => self.with_agent(agent::thaw).map(drop),
            VmCommand::Quit => self.quit(),
            VmCommand::PlugNic(nic) => self.plug_nic(nic),
            VmCommand::Unplug(VmDevice::Nic(name)) => self.unplug(nic_id(name)),
            VmCommand::PlugDisk(disk) => self.plug_disk(disk),
            VmCommand::Unplug(VmDevice::Disk(name)) => self.unplug(disk_id(name)),
            VmCommand::SetCpus(cpus) => self.set_cpus(*cpus),
            VmCommand::PlugVf { nic, address } => self.plug_vf(nic, *address),
            VmCommand::Unplug(VmDevice::Vf(nic)) => self.unplug_vf(nic),
            VmCommand::FinishMigration => self.execute_command(&Command::MigrateContinue),
            VmCommand::CancelMigration => self.execute_command(&Command::MigrateCancel),
            VmCommand::AnnounceAddresses => self.execute_command(&Command::AnnounceSelf),
        }
    }

    fn standbys(&self, nics: &[&str]) -> BTreeMap<String, NicStandbyState> {
        self.shared().query_standbys(nics)
    }

    fn guest_info(&self) -> Result<GuestInfo, VmError> {
        self.with_agent(agent::query_guest_info)
    }

    fn open_console(&self) -> Result<OwnedFd, VmError> {
        let _taking = self.hot_plug_lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.console_close_queue.wait(CONSOLE_LIMIT) {
            return Err(agent::not_closed("serial console"));
        }
        if !self.console_chardev()?.is_disconnected() {
            let name = &self.identity.name;
            return Err(refused(format!(
                "the serial console of VM {name} is in use, and only one client is possible; \
                 close it there first"
            )));
        }
        let failed = |error| {
            let text = format!("the serial console of the VM cannot be opened: {error}");
            VmError::new(VmErrorKind::NotRunning, text)
        };
        let stream = connect_in(&self.identity.folder, CONSOLE_SOCKET, CONSOLE_LIMIT);
        let stream = stream.map_err(failed)?;
        // Closes the connection if it is unusable. Dropped after `duplicate`, so that the last
        // close is that of its separate thread.
        let stream = QemuStream::new(stream, &self.console_close_queue).map_err(failed)?;
        let duplicate = OwnedFd::from(stream.try_clone().map_err(failed)?);
        // Before QEMU has accepted this connection, it could accept another one instead.
        let deadline = Instant::now() + CONSOLE_LIMIT;
        while self.console_chardev()?.is_disconnected() {
            if Instant::now() >= deadline {
                return Err(self
                    .shared()
                    .reply_timeout_error("open a connection to the serial console"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        stream.close();
        Ok(duplicate)
    }

    fn hardware(&self) -> Result<VmHardware, VmError> {
        self.query_hardware()
    }

    fn migrate_out(&self, line: OwnedFd, spec: &MigrationSpec) -> Result<(), VmError> {
        self.begin_sending(&line, spec)
    }

    fn migrate_in(&self) -> Result<OwnedFd, VmError> {
        self.begin_receiving()
    }

    fn migration_status(&self) -> Result<MigrationStatus, VmError> {
        self.query_migration_status()
    }
}

/// Returns the accelerator. `is_kvm` is QEMU's report whether it uses KVM.
pub(crate) const fn accelerator(is_kvm: bool) -> VmAccelerator {
    if is_kvm { VmAccelerator::Kvm } else { VmAccelerator::Tcg }
}
