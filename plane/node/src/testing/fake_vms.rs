//! VM host without processes: records commands and simulates guests.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use suimon_frame::MacAddr;
use suimon_ports::{
    GuestInfo, MigrationSpec, MigrationStatus, PluggedDevice, RunningVmStatus, SendingPhase,
    Standby, Vm, VmAccelerator, VmBoot, VmCommand, VmDevice, VmError, VmErrorKind, VmHardware,
    VmHost, VmIdentity, VmNotice, VmObserver, VmRunState, VmSpec,
};

use suimon_quantity::PciAddress;

use crate::VmDependencies;
use crate::testing::DEADLINE;

/// Maximum duration of a query of a QEMU that does not reply. Longer than tests wait for operations.
const STALL_MAX: Duration = Duration::from_secs(40);

/// VM host. Clones share the state, which survives daemons.
#[derive(Clone, Default)]
pub(crate) struct FakeVms(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    boot_id: String,
    folders: BTreeSet<PathBuf>,
    running: BTreeMap<String, Guest>,
    processes: u32,
    calls: Vec<String>,
    /// Method whose next call fails, or all of whose calls fail with `refuses_all`, and the error.
    refusal: Option<(&'static str, VmError)>,
    refuses_all: bool,
    /// Number of calls that failed because of `refusal`.
    refused: u32,
    /// True while calls of `prepare` block.
    holds_prepare: bool,
    /// Number of calls of `prepare` that block.
    held_count: u32,
    /// True while calls of `running` block.
    holds_list: bool,
    /// Number of calls of `running` that block.
    held_lists: u32,
    has_agent: bool,
    /// True if guests' drivers do not support VFs.
    takes_no_vfs: bool,
    /// True while guests boot: no driver has initialized their NICs.
    is_booting: bool,
    /// True while QEMU keeps VFs open that were unplugged.
    holds_vfs: bool,
    /// Number of attempts to take back a VF that is held.
    held_vfs: u32,
    /// True if requests to return a VF are not answered in time.
    ignores_returns: bool,
    /// VFs that a process other than the VMs has open.
    open_elsewhere: BTreeSet<String>,
    /// Number of queries of the failover state of NICs.
    standby_queries: u32,
    /// True while no QEMU replies to queries.
    stalls: bool,
    /// Call that blocks while its VM is running.
    held_call: Option<&'static str>,
    /// Call that is held from the next call that fails because of `refusal` on.
    held_after_refusal: Option<&'static str>,
    /// Number of calls that block because of `stalls` or `held_call`.
    stalled: u32,
    /// Number of calls that have blocked since the start.
    stalls_begun: u32,
    /// Number of kills while a query of a VM blocked.
    kills_while_stalled: u32,
    /// Set if guests release devices on request; called before the release is reported.
    on_unplug: Option<Arc<dyn Fn() + Send + Sync>>,
    /// VFs bound to `vfio-pci`.
    vfs: BTreeSet<String>,
    /// True if outgoing migrations stay in the copying phase.
    holds_memory: bool,
    /// Number of outgoing migrations started.
    sends: u32,
    /// Uptime reported for each VM.
    uptime: Duration,
}

struct Guest {
    spec: VmSpec,
    process: u32,
    cpus: u16,
    state: VmRunState,
    observer: Option<Arc<dyn VmObserver>>,
    /// VFs in the guest, by NIC.
    vfs: BTreeMap<String, String>,
    was_paused: bool,
    /// True if the VM is paused because a write found no space.
    waits_for_space: bool,
    /// True if a write finds no space again after each resume.
    is_out_of_space: bool,
    /// True if a write finds no space immediately before the next pause.
    finds_no_space_at_pause: bool,
    /// Phase of the migration, outgoing or incoming.
    sent: SendingPhase,
    /// Connection of the migration; closed with the guest.
    line: Option<UnixStream>,
}

impl FakeVms {
    pub(crate) fn parts(&self) -> VmDependencies {
        VmDependencies { host: Arc::new(self.clone()), boot_id: self.world().boot_id.clone() }
    }

    /// Simulates a reboot of the host: no VM is running.
    pub(crate) fn reboot(&self, boot_id: &str) {
        let mut world = self.world();
        world.boot_id = boot_id.to_owned();
        world.running.clear();
        world.folders.clear();
    }

    /// Has the next call of this method fail: `probe`, `prepare`, `start`, `adopt`, `running`,
    /// `kill`, `give_vf`, `take_vf`, `standby`, `guest`, `send`, `receive`, `migration_status` or `tell`.
    pub(crate) fn refuse(&self, call: &'static str, kind: VmErrorKind, text: &str) {
        let mut world = self.world();
        world.refusal = Some((call, VmError::new(kind, text)));
        world.refuses_all = false;
    }

    /// Has all calls of this method fail until the next call of `refuse` or `refuse_all`.
    pub(crate) fn refuse_all(&self, call: &'static str, kind: VmErrorKind, text: &str) {
        self.refuse(call, kind, text);
        self.world().refuses_all = true;
    }

    /// Returns the number of calls that failed because of `refuse` or `refuse_all`.
    pub(crate) fn refused_count(&self) -> u32 {
        self.world().refused
    }

    /// Sets whether calls of `prepare` block, and with them the control thread.
    pub(crate) fn hold_prepare(&self, is_held: bool) {
        self.world().holds_prepare = is_held;
    }

    /// Sets whether calls of `running` block.
    pub(crate) fn hold_list(&self, is_held: bool) {
        self.world().holds_list = is_held;
    }

    /// Returns true if a call of `running` blocks.
    pub(crate) fn is_list_held(&self) -> bool {
        self.world().held_lists > 0
    }

    /// Returns true if a call of `prepare` blocks.
    pub(crate) fn is_held(&self) -> bool {
        self.world().held_count > 0
    }

    /// Simulates a QEMU that has sent all memory and has stopped the CPUs for the switchover, without
    /// a notice.
    pub(crate) fn stop_for_switchover(&self, name: &str) {
        if let Some(guest) = self.world().running.get_mut(name) {
            (guest.sent, guest.state) = (SendingPhase::Waiting, VmRunState::Paused);
        }
    }

    /// Has guest agents run in all guests.
    pub(crate) fn have_agents(&self) {
        self.world().has_agent = true;
    }

    /// Sets whether guests' drivers support VFs.
    pub(crate) fn take_vfs(&self, is_taking: bool) {
        self.world().takes_no_vfs = !is_taking;
    }

    /// Sets whether guests boot, so that no driver has initialized their NICs.
    pub(crate) fn boot(&self, is_booting: bool) {
        self.world().is_booting = is_booting;
    }

    /// Sets whether requests to return a VF exceed their time limit, as with a launcher of an earlier
    /// version while QEMU keeps the VF open.
    pub(crate) fn ignore_returns(&self, is_ignoring: bool) {
        self.world().ignores_returns = is_ignoring;
    }

    /// Opens a VF in a process that is not one of the VMs.
    pub(crate) fn open_elsewhere(&self, vf: &str) {
        self.world().open_elsewhere.insert(vf.to_owned());
    }

    /// Sets whether QEMU keeps VFs open that were unplugged.
    pub(crate) fn hold_vfs(&self, is_held: bool) {
        self.world().holds_vfs = is_held;
    }

    /// Returns the number of attempts to take back a VF that QEMU keeps open.
    pub(crate) fn held_vfs(&self) -> u32 {
        self.world().held_vfs
    }

    /// Sets whether queries of QEMU, and attempts to adopt a VM, block until its process ends.
    pub(crate) fn stall_queries(&self, is_stalled: bool) {
        self.world().stalls = is_stalled;
    }

    /// Has calls of a method block while their VM is running, until the next call of this function.
    pub(crate) fn hold_call(&self, call: Option<&'static str>) {
        self.world().held_call = call;
    }

    /// Has the next call of a method fail, and later calls block while their VM is running.
    pub(crate) fn refuse_and_hold(&self, call: &'static str, text: &str) {
        let mut world = self.world();
        world.refusal = Some((call, VmError::new(VmErrorKind::Timeout, text)));
        (world.refuses_all, world.held_after_refusal) = (false, Some(call));
    }

    /// Returns true if a query blocks.
    pub(crate) fn is_stalled(&self) -> bool {
        self.world().stalled > 0
    }

    /// Returns the call that is held.
    pub(crate) fn held_call(&self) -> Option<&'static str> {
        self.world().held_call
    }

    /// Returns the number of queries that have blocked, including those that have ended.
    pub(crate) fn stalls_begun(&self) -> u32 {
        self.world().stalls_begun
    }

    /// Returns the number of VMs that were killed while a query blocked.
    pub(crate) fn kills_while_stalled(&self) -> u32 {
        self.world().kills_while_stalled
    }

    /// Blocks while no QEMU replies and the VM is running.
    fn stall(&self, name: &str) {
        self.block(name, |world| world.stalls);
    }

    /// Blocks while this call is held and the VM is running.
    fn hold(&self, call: &'static str, name: &str) {
        self.block(name, |world| world.held_call == Some(call));
    }

    fn block(&self, name: &str, is_blocked: impl Fn(&World) -> bool) {
        // Limited, so that a failed test ends.
        let limit = Instant::now() + STALL_MAX;
        let is_stalled = || {
            let world = self.world();
            is_blocked(&world) && world.running.contains_key(name)
        };
        if !is_stalled() {
            return;
        }
        {
            let mut world = self.world();
            world.stalled += 1;
            world.stalls_begun += 1;
        }
        while is_stalled() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.world().stalled -= 1;
    }

    /// Returns the number of queries of the failover state of NICs.
    pub(crate) fn standby_queries(&self) -> u32 {
        self.world().standby_queries
    }

    /// Returns the VFs bound to `vfio-pci`.
    pub(crate) fn vfs(&self) -> Vec<String> {
        self.world().vfs.iter().cloned().collect()
    }

    /// Returns the VFs in a guest, by NIC.
    pub(crate) fn plugged_vfs(&self, name: &str) -> BTreeMap<String, String> {
        self.world().running.get(name).map(|guest| guest.vfs.clone()).unwrap_or_default()
    }

    /// Has a guest release the VF of a NIC.
    pub(crate) fn release_vf(&self, name: &str, nic: &str) {
        if let Some(guest) = self.world().running.get_mut(name) {
            guest.vfs.remove(nic);
        }
        self.guest(name, VmNotice::Unplugged(VmDevice::Vf(nic.to_owned())));
    }

    /// Has guests release devices on request from now on. `handle_unplug` is called before each
    /// release is reported.
    pub(crate) fn release_vfs(&self, handle_unplug: impl Fn() + Send + Sync + 'static) {
        self.world().on_unplug = Some(Arc::new(handle_unplug));
    }

    /// Sets whether outgoing migrations stay in the copying phase.
    pub(crate) fn hold_memory(&self, is_held: bool) {
        self.world().holds_memory = is_held;
    }

    /// Sets the uptime reported for each VM.
    pub(crate) fn set_uptime(&self, uptime: Duration) {
        self.world().uptime = uptime;
    }

    /// Returns the number of outgoing migrations started.
    pub(crate) fn sends(&self) -> u32 {
        self.world().sends
    }

    /// Closes the connections of all migrations.
    pub(crate) fn cut_lines(&self) {
        self.world().running.values_mut().for_each(|guest| guest.line = None);
    }

    /// Returns the run state of a VM; `None` if it is not running on this host.
    pub(crate) fn state(&self, name: &str) -> Option<VmRunState> {
        self.world().running.get(name).map(|guest| guest.state)
    }

    pub(crate) fn running(&self) -> Vec<String> {
        self.world().running.keys().cloned().collect()
    }

    pub(crate) fn folders(&self) -> BTreeSet<PathBuf> {
        self.world().folders.clone()
    }

    /// Returns the commands to all VMs, in order.
    pub(crate) fn commands(&self) -> Vec<String> {
        self.world().calls.clone()
    }

    pub(crate) fn spec(&self, name: &str) -> VmSpec {
        self.world().running[name].spec.clone()
    }

    /// Reports a notice of a VM.
    pub(crate) fn guest(&self, name: &str, notice: VmNotice) {
        let mut world = self.world();
        let observer = world.running[name].observer.clone();
        if matches!(notice, VmNotice::Ended { .. }) {
            world.running.remove(name);
        }
        drop(world);
        if let Some(observer) = observer {
            observer.handle_notice(notice);
        }
    }

    /// Simulates a write to an emulated disk that finds no space.
    pub(crate) fn find_no_space(&self, name: &str) {
        let mut world = self.world();
        if let Some(guest) = world.running.get_mut(name) {
            guest.state = VmRunState::Paused;
            guest.waits_for_space = true;
        }
        drop(world);
        self.guest(name, VmNotice::State(VmRunState::Paused));
    }

    /// Sets whether writes of a VM find no space after each resume.
    pub(crate) fn keep_out_of_space(&self, name: &str, is_out: bool) {
        if let Some(guest) = self.world().running.get_mut(name) {
            guest.is_out_of_space = is_out;
        }
    }

    /// Has a write of a VM find no space immediately before the next pause.
    pub(crate) fn find_no_space_at_pause(&self, name: &str) {
        if let Some(guest) = self.world().running.get_mut(name) {
            guest.finds_no_space_at_pause = true;
        }
    }

    /// Simulates the end of the daemon: notices of VMs have no receiver.
    pub(crate) fn forget_observers(&self) {
        self.world().running.values_mut().for_each(|guest| guest.observer = None);
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    fn check(&self, call: &'static str) -> Result<(), VmError> {
        let mut world = self.world();
        let refusal = world.refusal.clone().filter(|(refused_call, _)| *refused_call == call);
        if !world.refuses_all && refusal.is_some() {
            world.refusal = None;
        }
        world.refused += u32::from(refusal.is_some());
        if refusal.is_some() && world.held_after_refusal.is_some() {
            world.held_call = world.held_after_refusal.take();
        }
        refusal.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn handle(&self, name: &str) -> Box<dyn Vm> {
        Box::new(FakeVm { host: self.clone(), name: name.to_owned() })
    }
}

fn identity(name: &str, guest: &Guest) -> VmIdentity {
    let folder = guest.spec.folder.clone();
    VmIdentity { name: name.to_owned(), folder, process: guest.process, started: 1 }
}

fn not_running() -> VmError {
    VmError::new(VmErrorKind::NotRunning, "it does not exist any more")
}

impl VmHost for FakeVms {
    fn uefi_firmware(&self) -> Option<VmBoot> {
        None
    }

    fn cpu_flags(&self) -> Vec<String> {
        vec!["fpu".to_owned()]
    }

    fn running(&self) -> Result<Vec<VmIdentity>, VmError> {
        self.check("running")?;
        self.world().held_lists += 1;
        // Limited, so that a failed test ends.
        let limit = Instant::now() + DEADLINE;
        while self.world().holds_list && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.world().held_lists -= 1;
        Ok(self.world().running.iter().map(|(name, guest)| identity(name, guest)).collect())
    }

    fn probe(&self, _spec: &VmSpec) -> Result<(), VmError> {
        self.check("probe")
    }

    fn prepare(&self, folder: &Path, _user: u32) -> Result<(), VmError> {
        self.world().held_count += 1;
        // Limited, so that a failed test ends.
        let limit = Instant::now() + DEADLINE;
        while self.world().holds_prepare && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.world().held_count -= 1;
        self.check("prepare")?;
        let mut world = self.world();
        if world.running.values().any(|guest| guest.spec.folder == folder) {
            return Err(VmError::new(VmErrorKind::AlreadyRunning, "a VM runs in it"));
        }
        world.folders.insert(folder.to_owned());
        Ok(())
    }

    fn start(&self, spec: &VmSpec, observer: Arc<dyn VmObserver>) -> Result<Box<dyn Vm>, VmError> {
        self.check("start")?;
        let mut world = self.world();
        assert!(world.folders.contains(&spec.folder), "a VM has its folder before it starts");
        world.processes += 1;
        let process = world.processes;
        let guest = Guest {
            spec: spec.clone(),
            process,
            cpus: spec.cpus,
            state: match spec.migration_source {
                None => VmRunState::Running,
                Some(_) => VmRunState::Paused,
            },
            observer: Some(observer),
            vfs: BTreeMap::new(),
            was_paused: false,
            waits_for_space: false,
            is_out_of_space: false,
            finds_no_space_at_pause: false,
            sent: SendingPhase::None,
            line: None,
        };
        assert!(world.running.insert(spec.name.clone(), guest).is_none(), "it runs already");
        drop(world);
        Ok(self.handle(&spec.name))
    }

    fn adopt(
        &self,
        identity: &VmIdentity,
        observer: Arc<dyn VmObserver>,
    ) -> Result<Box<dyn Vm>, VmError> {
        self.check("adopt")?;
        self.stall(&identity.name);
        let mut world = self.world();
        let guest = world.running.get_mut(&identity.name);
        let guest =
            guest.filter(|guest| guest.process == identity.process).ok_or_else(not_running)?;
        guest.observer = Some(observer);
        drop(world);
        Ok(self.handle(&identity.name))
    }

    fn kill(&self, identity: &VmIdentity) -> Result<(), VmError> {
        self.check("kill")?;
        let mut world = self.world();
        let is_process = |guest: &Guest| {
            guest.process == identity.process && guest.spec.folder == identity.folder
        };
        if !world.running.get(&identity.name).is_some_and(is_process) {
            return Err(not_running());
        }
        world.running.remove(&identity.name);
        world.kills_while_stalled += u32::from(world.stalled > 0);
        Ok(())
    }

    fn assign_vf(
        &self,
        identity: &VmIdentity,
        vf: PciAddress,
        memory_bytes: u64,
    ) -> Result<(), VmError> {
        self.check("give_vf")?;
        let mut world = self.world();
        assert!(world.running.contains_key(&identity.name) && memory_bytes > 0);
        if world.open_elsewhere.contains(&vf.to_string()) {
            return Err(VmError::new(VmErrorKind::Busy, "another process has it open"));
        }
        assert!(world.vfs.insert(vf.to_string()), "{vf} is given twice");
        Ok(())
    }

    fn reclaim_vf(&self, _vm: &str, vf: PciAddress) -> Result<(), VmError> {
        self.check("take_vf")?;
        let mut world = self.world();
        if world.ignores_returns {
            world.held_vfs += 1;
            return Err(VmError::new(VmErrorKind::Timeout, "no response"));
        }
        if world.holds_vfs {
            world.held_vfs += 1;
            return Err(VmError::new(VmErrorKind::Busy, "it is open"));
        }
        let mut assigned = world.running.values().flat_map(|guest| guest.vfs.values());
        assert!(assigned.all(|assigned_vf| *assigned_vf != vf.to_string()), "a guest has {vf}");
        world.vfs.remove(&vf.to_string());
        Ok(())
    }

    fn remove(&self, folder: &Path) -> Result<(), VmError> {
        let mut world = self.world();
        if world.running.values().any(|guest| guest.spec.folder == folder) {
            return Err(VmError::new(VmErrorKind::AlreadyRunning, "a VM runs in it"));
        }
        world.folders.remove(folder);
        Ok(())
    }
}

struct FakeVm {
    host: FakeVms,
    name: String,
}

impl Vm for FakeVm {
    fn identity(&self) -> VmIdentity {
        let world = self.host.world();
        match world.running.get(&self.name) {
            Some(guest) => identity(&self.name, guest),
            None => VmIdentity {
                name: self.name.clone(),
                folder: PathBuf::new(),
                process: 0,
                started: 0,
            },
        }
    }

    fn uptime(&self) -> Duration {
        self.host.world().uptime
    }

    fn status(&self) -> RunningVmStatus {
        let world = self.host.world();
        let guest = world.running.get(&self.name);
        RunningVmStatus {
            state: guest.map_or(VmRunState::Off, |guest| guest.state),
            waits_for_space: guest.is_some_and(|guest| guest.waits_for_space),
            accelerator: VmAccelerator::Tcg,
            cpus: guest.map_or(0, |guest| guest.cpus),
            qemu_version: "7.2".to_owned(),
            reconnects_streams: false,
            has_agent: world.has_agent,
            user: guest.map(|guest| guest.spec.user),
        }
    }

    fn execute(&self, command: &VmCommand) -> Result<(), VmError> {
        self.host.check("tell")?;
        if *command == VmCommand::FinishMigration {
            self.host.hold("finish", &self.name);
        }
        let mut world = self.host.world();
        world.calls.push(format!("{} {}", self.name, command_text(command)));
        let on_unplug = world.on_unplug.clone();
        let guest = world.running.get_mut(&self.name).ok_or_else(not_running)?;
        let mut is_paused_again = false;
        let notice = match command {
            VmCommand::Pause => {
                guest.state = VmRunState::Paused;
                guest.waits_for_space |= guest.finds_no_space_at_pause;
                Some(VmNotice::State(VmRunState::Paused))
            }
            VmCommand::Resume => {
                guest.waits_for_space = guest.is_out_of_space;
                guest.state = VmRunState::Running;
                if guest.is_out_of_space {
                    guest.state = VmRunState::Paused;
                    is_paused_again = true;
                }
                Some(VmNotice::State(VmRunState::Running))
            }
            VmCommand::Reset => Some(VmNotice::Reset),
            VmCommand::PlugVf { nic, address } => {
                let before = guest.vfs.insert(nic.clone(), address.to_string());
                assert_eq!(before, None, "nic/{nic} has two VFs");
                None
            }
            VmCommand::Unplug(VmDevice::Vf(nic)) if !guest.vfs.contains_key(nic) => {
                return Err(not_running());
            }
            VmCommand::Unplug(device) if on_unplug.is_some() => {
                if let VmDevice::Vf(nic) = device {
                    guest.vfs.remove(nic);
                }
                Some(VmNotice::Unplugged(device.clone()))
            }
            VmCommand::FinishMigration => {
                guest.finish_sending();
                None
            }
            VmCommand::CancelMigration => {
                guest.sent = SendingPhase::Failed("the migration was cancelled".to_owned());
                guest.line = None;
                let continues = guest.state == VmRunState::Paused
                    && !guest.was_paused
                    && !guest.waits_for_space;
                guest.state = if continues { VmRunState::Running } else { guest.state };
                continues.then_some(VmNotice::State(VmRunState::Running))
            }
            VmCommand::SetCpus(cpus) => {
                guest.cpus = *cpus;
                None
            }
            _ => None,
        };
        let observer = guest.observer.clone();
        drop(world);
        if let (Some(handle_unplug), VmCommand::Unplug(_)) = (on_unplug, command) {
            handle_unplug();
        }
        if let (Some(observer), Some(notice)) = (observer, notice) {
            observer.handle_notice(notice);
            if is_paused_again {
                observer.handle_notice(VmNotice::State(VmRunState::Paused));
            }
        }
        Ok(())
    }

    fn standbys(&self, nics: &[&str]) -> BTreeMap<String, Standby> {
        self.host.stall(&self.name);
        let mut standbys = BTreeMap::new();
        for nic in nics {
            if self.host.check("standby").is_err() {
                continue;
            }
            let mut world = self.host.world();
            world.standby_queries += 1;
            let Some(guest) = world.running.get(&self.name) else { continue };
            let standby = Standby {
                is_negotiated: !world.takes_no_vfs && !world.is_booting,
                is_driver_ready: !world.is_booting,
                has_vf: guest.vfs.contains_key(*nic),
            };
            standbys.insert((*nic).to_owned(), standby);
        }
        standbys
    }

    fn guest(&self) -> Result<GuestInfo, VmError> {
        self.host.check("guest")?;
        Ok(GuestInfo { host_name: Some("web".to_owned()), ..GuestInfo::default() })
    }

    fn console(&self) -> Result<OwnedFd, VmError> {
        Err(VmError::new(VmErrorKind::Refused, "it has none"))
    }

    fn layout(&self) -> Result<VmHardware, VmError> {
        let world = self.host.world();
        let guest = world.running.get(&self.name).ok_or_else(not_running)?;
        let plugged = guest.spec.nics.iter().zip(3..).map(|(nic, port)| PluggedDevice {
            device: VmDevice::Nic(nic.name.clone()),
            port: nic.port.unwrap_or(port),
            mac: Some(nic.mac.unwrap_or(MacAddr::new([2, 0, 0, 0, 0, port]))),
        });
        Ok(VmHardware { machine: "pc-q35-7.2".to_owned(), plugged: plugged.collect() })
    }

    fn migrate_out(&self, line: OwnedFd, _spec: &MigrationSpec) -> Result<(), VmError> {
        self.host.check("send")?;
        let mut world = self.host.world();
        world.sends += 1;
        let guest = world.running.get_mut(&self.name).ok_or_else(not_running)?;
        assert!(guest.vfs.is_empty(), "memory is sent that a VF writes to");
        guest.line = Some(line.into());
        guest.was_paused = guest.state == VmRunState::Paused;
        guest.sent = SendingPhase::Copying;
        Ok(())
    }

    fn migrate_in(&self) -> Result<OwnedFd, VmError> {
        self.host.check("receive")?;
        let mut world = self.host.world();
        let guest = world.running.get_mut(&self.name).ok_or_else(not_running)?;
        let (near, line) = UnixStream::pair().unwrap();
        guest.line = Some(line);
        guest.sent = SendingPhase::Copying;
        Ok(near.into())
    }

    fn migration_status(&self) -> Result<MigrationStatus, VmError> {
        self.host.check("send_status")?;
        self.host.hold("send_status", &self.name);
        let mut world = self.host.world();
        let is_held = world.holds_memory;
        let guest = world.running.get_mut(&self.name).ok_or_else(not_running)?;
        let notice = guest.go_on_sending(is_held);
        let phase = guest.sent.clone();
        let observer = guest.observer.clone();
        if matches!(notice, Some(VmNotice::Ended { .. })) {
            world.running.remove(&self.name);
        }
        drop(world);
        if let (Some(observer), Some(notice)) = (observer, notice) {
            observer.handle_notice(notice);
        }
        Ok(MigrationStatus { phase, bytes_sent: 4096, remaining_bytes: 0 })
    }
}

/// Data sent instead of the memory.
const MEMORY: &[u8] = b"memory";

impl Guest {
    /// Advances a migration at a status query. The source stops the VM unless `is_held`; the
    /// destination reads the connection, and ends if the connection is closed.
    fn go_on_sending(&mut self, is_held: bool) -> Option<VmNotice> {
        if self.sent != SendingPhase::Copying {
            return None;
        }
        if self.spec.migration_source.is_none() || self.has_come() {
            if is_held {
                return None;
            }
            self.sent = SendingPhase::Waiting;
            self.state = VmRunState::Paused;
            return Some(VmNotice::State(VmRunState::Paused));
        }
        let line = self.line.as_mut()?;
        let mut received = [0; MEMORY.len()];
        line.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        match line.read_exact(&mut received) {
            Ok(()) if received == MEMORY => {
                self.sent = SendingPhase::Done;
                None
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                let reason = "the line has ended".to_owned();
                Some(VmNotice::Ended { is_orderly: false, reason })
            }
            _ => None,
        }
    }

    /// Returns true if an arrived VM runs, so that a migration is outgoing.
    fn has_come(&self) -> bool {
        self.state == VmRunState::Running
    }

    fn finish_sending(&mut self) {
        let result = self.line.as_mut().map(|line| line.write_all(MEMORY));
        self.sent = match result {
            Some(Ok(())) => SendingPhase::Done,
            _ => SendingPhase::Failed("nobody reads it".to_owned()),
        };
        let continues = self.sent != SendingPhase::Done && !self.was_paused;
        self.state = if continues { VmRunState::Running } else { self.state };
    }
}

fn command_text(command: &VmCommand) -> String {
    match command {
        VmCommand::PlugNic(nic) => format!("plug nic {} {}", nic.name, nic.socket.display()),
        VmCommand::Unplug(device) => format!("unplug {device}"),
        VmCommand::PlugVf { nic, address } => format!("plug VF {address} of nic/{nic}"),
        VmCommand::PlugDisk(disk) => format!("plug disk {}", disk.name),
        other => format!("{other:?}"),
    }
}
