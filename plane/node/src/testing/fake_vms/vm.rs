//! Connection to one VM: commands and queries.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use suimon_frame::MacAddr;
use suimon_ports::{
    GuestInfo, MigrationSpec, MigrationStatus, MigrationTransferPhase, NicStandbyState,
    PluggedDevice, RunningVmStatus, Vm, VmAccelerator, VmCommand, VmDevice, VmError, VmErrorKind,
    VmHardware, VmIdentity, VmNotice, VmRunState,
};

use super::{FakeVms, identity, not_running};

pub(super) struct FakeVm {
    pub(super) host: FakeVms,
    pub(super) name: String,
}

impl Vm for FakeVm {
    fn identity(&self) -> VmIdentity {
        let world = self.host.world();
        match world.running.get(&self.name) {
            Some(guest) => identity(&self.name, guest),
            None => VmIdentity {
                name: self.name.clone(),
                folder: PathBuf::new(),
                pid: 0,
                started_ticks: 0,
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
            uid: guest.map(|guest| guest.spec.uid),
        }
    }

    fn execute(&self, command: &VmCommand) -> Result<(), VmError> {
        self.host.check("tell")?;
        if *command == VmCommand::FinishMigration {
            self.host.hold("finish", &self.name);
        }
        let mut world = self.host.world();
        world.told.push(format!("{} {}", self.name, command_text(command)));
        let on_unplug = world.on_unplug.clone();
        let guest = world.running.get_mut(&self.name).ok_or_else(not_running)?;
        let mut is_paused_again = false;
        let notice = match command {
            VmCommand::Pause => {
                guest.state = VmRunState::Paused;
                guest.waits_for_space |= guest.finds_no_space_at_pause;
                Some(VmNotice::StateChanged(VmRunState::Paused))
            }
            VmCommand::Resume => {
                guest.waits_for_space = guest.is_out_of_space;
                guest.state = VmRunState::Running;
                if guest.is_out_of_space {
                    guest.state = VmRunState::Paused;
                    is_paused_again = true;
                }
                Some(VmNotice::StateChanged(VmRunState::Running))
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
                let reason = "the migration was cancelled".to_owned();
                guest.sent = MigrationTransferPhase::Failed(reason);
                guest.line = None;
                let is_held = guest.was_paused || guest.waits_for_space;
                let goes_on = guest.state == VmRunState::Paused && !is_held;
                guest.state = if goes_on { VmRunState::Running } else { guest.state };
                goes_on.then_some(VmNotice::StateChanged(VmRunState::Running))
            }
            VmCommand::SetCpus(cpus) => {
                guest.cpus = *cpus;
                None
            }
            _ => None,
        };
        let observer = guest.observer.clone();
        drop(world);
        if let (Some(look), VmCommand::Unplug(_)) = (on_unplug, command) {
            look();
        }
        if let (Some(observer), Some(notice)) = (observer, notice) {
            observer.handle_notice(notice);
            if is_paused_again {
                observer.handle_notice(VmNotice::StateChanged(VmRunState::Paused));
            }
        }
        Ok(())
    }

    fn standbys(&self, nics: &[&str]) -> BTreeMap<String, NicStandbyState> {
        self.host.stall(&self.name);
        let mut standbys = BTreeMap::new();
        for nic in nics {
            if self.host.check("standby").is_err() {
                continue;
            }
            let mut world = self.host.world();
            world.standby_queries += 1;
            let Some(guest) = world.running.get(&self.name) else { continue };
            let standby = NicStandbyState {
                is_negotiated: !world.takes_no_vfs && !world.is_booting,
                is_driver_ready: !world.is_booting,
                has_vf: guest.vfs.contains_key(*nic),
            };
            standbys.insert((*nic).to_owned(), standby);
        }
        standbys
    }

    fn guest_info(&self) -> Result<GuestInfo, VmError> {
        self.host.check("guest")?;
        Ok(GuestInfo { host_name: Some("web".to_owned()), ..GuestInfo::default() })
    }

    fn open_console(&self) -> Result<OwnedFd, VmError> {
        Err(VmError::new(VmErrorKind::Refused, "it has none"))
    }

    fn hardware(&self) -> Result<VmHardware, VmError> {
        let world = self.host.world();
        let guest = world.running.get(&self.name).ok_or_else(not_running)?;
        let plugged = guest.spec.nics.iter().zip(3..).map(|(nic, port)| PluggedDevice {
            device: VmDevice::Nic(nic.name.clone()),
            root_port: nic.root_port.unwrap_or(port),
            mac: Some(nic.mac.unwrap_or(MacAddr::new([2, 0, 0, 0, 0, port]))),
        });
        Ok(VmHardware { machine_type: "pc-q35-7.2".to_owned(), plugged_devices: plugged.collect() })
    }

    fn migrate_out(&self, line: OwnedFd, _spec: &MigrationSpec) -> Result<(), VmError> {
        self.host.check("send")?;
        let mut world = self.host.world();
        world.sends += 1;
        let guest = world.running.get_mut(&self.name).ok_or_else(not_running)?;
        assert!(guest.vfs.is_empty(), "memory is sent that a VF writes to");
        guest.line = Some(line.into());
        guest.was_paused = guest.state == VmRunState::Paused;
        guest.sent = MigrationTransferPhase::Copying;
        Ok(())
    }

    fn migrate_in(&self) -> Result<OwnedFd, VmError> {
        self.host.check("receive")?;
        let mut world = self.host.world();
        let guest = world.running.get_mut(&self.name).ok_or_else(not_running)?;
        let (near, line) = UnixStream::pair().unwrap();
        guest.line = Some(line);
        guest.sent = MigrationTransferPhase::Copying;
        Ok(near.into())
    }

    fn migration_status(&self) -> Result<MigrationStatus, VmError> {
        self.host.check("send_status")?;
        self.host.hold("send_status", &self.name);
        let mut world = self.host.world();
        let holds = world.holds_memory;
        let guest = world.running.get_mut(&self.name).ok_or_else(not_running)?;
        let notice = guest.go_on_sending(holds);
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

fn command_text(command: &VmCommand) -> String {
    match command {
        VmCommand::PlugNic(nic) => format!("plug nic {} {}", nic.name, nic.socket.display()),
        VmCommand::Unplug(device) => format!("unplug {device}"),
        VmCommand::PlugVf { nic, address } => format!("plug VF {address} of nic/{nic}"),
        VmCommand::PlugDisk(disk) => format!("plug disk {}", disk.name),
        other => format!("{other:?}"),
    }
}
