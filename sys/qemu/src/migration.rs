//! Live migration of a VM to another QEMU: the hardware that both sides must have in common, and
//! the connection for the transfer.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use serde_json::Value;
use suimon_frame::MacAddr;
use suimon_ports::{
    MigrationSpec, MigrationStatus, MigrationTransferPhase, PluggedDevice, VmDevice, VmError,
    VmErrorKind, VmHardware,
};
use suimon_qmp::MigrationCapability::{
    AutoConverge, LateBlockActivate, PauseBeforeSwitchover, ReturnPath,
};
use suimon_qmp::{
    Command, MigrationStage, decode_base_memory_bytes, decode_machine_type, decode_migration,
    decode_qom_properties,
};
use suimon_unix_socket::refuse_descriptors;

use crate::devices::{device_of, port_id};
use crate::spec_check::HOT_PLUG_PORTS_MAX;
use crate::translated_memory::check_dirty_tracking;
use crate::vm::{QemuVm, invalid_reply};

/// Name under which QEMU stores the descriptor of the migration's connection.
const LINE: &str = "migration";

/// Returns the command that prepares QEMU for an incoming migration.
pub(crate) fn prepare_incoming_command() -> Command {
    Command::MigrateSetCapabilities(vec![ReturnPath, LateBlockActivate])
}

/// Creates a connected socket pair: the daemon's end and QEMU's end. From the beginning, the kernel
/// refuses descriptors that QEMU attaches to its data, if it supports this.
fn receiving_pair() -> io::Result<(UnixStream, UnixStream)> {
    let (local, peer) = UnixStream::pair()?;
    refuse_descriptors(&local);
    Ok((local, peer))
}

impl QemuVm {
    /// Returns the QOM path of the device behind the root port `number`; `None` if the port is
    /// empty.
    pub(crate) fn device_behind_port(&self, number: usize) -> Result<Option<String>, VmError> {
        let port = port_id(number);
        let path = format!("/machine/peripheral/{port}/{port}");
        let properties =
            decode_qom_properties(&self.request(&Command::QomList { path: path.clone() })?);
        let properties = properties.map_err(invalid_reply)?;
        let Some(child) =
            properties.into_iter().find(|property| property.name.starts_with("child["))
        else {
            return Ok(None);
        };
        let link = self.property(&path, &child.name)?;
        Ok(Some(link.as_str().unwrap_or_default().to_owned()))
    }

    pub(crate) fn query_hardware(&self) -> Result<VmHardware, VmError> {
        let memory = decode_base_memory_bytes(&self.request(&Command::QueryMemorySizeSummary)?)
            .map_err(invalid_reply)?;
        check_dirty_tracking(self.machine, memory)?;
        let machine =
            decode_machine_type(&self.property("/machine", "type")?).map_err(invalid_reply)?;
        let (mut plugged, started_at) = (Vec::new(), Instant::now());
        for number in 0..HOT_PLUG_PORTS_MAX {
            self.shared().check_time(started_at, "a query of the ports")?;
            let Some(path) = self.device_behind_port(number)? else { continue };
            let id = path.rsplit('/').next().unwrap_or_default();
            if let (Some(device), Ok(port)) = (device_of(id), u8::try_from(number)) {
                let mac = match device {
                    VmDevice::Nic(_) => Some(self.mac_of(&path)?),
                    VmDevice::Disk(_) | VmDevice::Vf(_) => None,
                };
                plugged.push(PluggedDevice { device, root_port: port, mac });
            }
        }
        Ok(VmHardware { machine_type: machine, plugged_devices: plugged })
    }

    fn property(&self, path: &str, property: &str) -> Result<Value, VmError> {
        self.request(&Command::QomGet { path: path.to_owned(), property: property.to_owned() })
    }

    /// Returns the MAC address of the NIC with the QOM path `path`, which QEMU may have generated.
    fn mac_of(&self, path: &str) -> Result<MacAddr, VmError> {
        let value = self.property(path, "mac")?;
        let mac = value.as_str().and_then(|mac| mac.parse().ok());
        mac.ok_or_else(|| {
            // QEMU determines the length of the response.
            let excerpt: String = value.to_string().chars().take(40).collect();
            let text = format!("invalid response of QEMU: {path} has the address {excerpt}");
            VmError::new(VmErrorKind::Refused, text)
        })
    }

    pub(crate) fn begin_sending(
        &self,
        line: &OwnedFd,
        spec: &MigrationSpec,
    ) -> Result<(), VmError> {
        let capabilities = vec![ReturnPath, PauseBeforeSwitchover, AutoConverge];
        self.execute_command(&Command::MigrateSetCapabilities(capabilities))?;
        self.execute_command(&Command::MigrateSetParameters {
            downtime_ms: u64::try_from(spec.downtime_max.as_millis()).unwrap_or(u64::MAX),
            bytes_per_second: spec.bytes_per_second.unwrap_or(0),
        })?;
        self.shared().send_descriptor(LINE, line.as_fd())?;
        self.execute_command(&Command::Migrate { fd_name: LINE })
    }

    /// Starts to receive the VM's memory. Returns the daemon's end of the connection for it.
    pub(crate) fn begin_receiving(&self) -> Result<OwnedFd, VmError> {
        let (local, line) = receiving_pair().map_err(|error| {
            let text = format!("the connection for the VM's memory cannot be opened: {error}");
            VmError::new(VmErrorKind::Host, text)
        })?;
        self.shared().send_descriptor(LINE, line.as_fd())?;
        self.execute_command(&Command::MigrateIncoming { fd_name: LINE })?;
        Ok(local.into())
    }

    pub(crate) fn query_migration_status(&self) -> Result<MigrationStatus, VmError> {
        let read =
            decode_migration(&self.request(&Command::QueryMigrate)?).map_err(invalid_reply)?;
        let phase = match read.stage {
            MigrationStage::None => MigrationTransferPhase::None,
            MigrationStage::Active => MigrationTransferPhase::Copying,
            MigrationStage::PreSwitchover => MigrationTransferPhase::WaitingForFinish,
            MigrationStage::Device => MigrationTransferPhase::Finishing,
            MigrationStage::Completed => MigrationTransferPhase::Done,
            MigrationStage::Failed(reason) => MigrationTransferPhase::Failed(reason),
            MigrationStage::Cancelled => {
                MigrationTransferPhase::Failed("the migration was cancelled".to_owned())
            }
        };
        Ok(MigrationStatus {
            phase,
            bytes_sent: read.bytes_sent,
            remaining_bytes: read.remaining_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::mem::MaybeUninit;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use super::*;

    /// Otherwise the thread that reads the connection later would close the descriptors, which may
    /// block.
    #[test]
    fn descriptors_of_a_migrating_qemu_are_refused_from_the_start() {
        if !refuse_descriptors(UnixStream::pair().unwrap().0) {
            eprintln!("skipped: the kernel is older than Linux 6.16");
            return;
        }
        let (local, peer) = receiving_pair().unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [local.as_fd()];
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let result = sendmsg(&peer, &[IoSlice::new(b"x")], &mut ancillary, SendFlags::NOSIGNAL);
        assert_eq!(result, Err(rustix::io::Errno::PERM));
    }
}
