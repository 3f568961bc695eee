//! Virtual functions (VFs) of a VM's NICs: hot-plug next to their standby NIC, and unplug.

use std::sync::PoisonError;

use suimon_ports::{Standby, VmError, VmErrorKind};
use suimon_qmp::{Command, has_standby, is_driver_ready, qom_properties};
use suimon_quantity::PciAddress;

use crate::devices::{EmulatedMachine, nic_id, vf_id};
use crate::spec_check::{PORTS, is_name};
use crate::vm::{QemuVm, invalid_reply};

/// QOM path of devices with an id.
const DEVICES: &str = "/machine/peripheral";

impl QemuVm {
    pub(crate) fn plug_vf(&self, nic: &str, address: PciAddress) -> Result<(), VmError> {
        check_name(nic)?;
        let _plugging = self.plugging.lock().unwrap_or_else(PoisonError::into_inner);
        // The search starts at the last port: a VF that QEMU does not expose yet occupies its port
        // invisibly.
        let port = self.free_port_of((0..PORTS).rev())?;
        self.execute_command(&Command::DeviceAdd(EmulatedMachine::vf(nic, address, &port)))
    }

    /// Requests that the guest release the VF; fails with `NotRunning` if the VM does not have it.
    pub(crate) fn unplug_vf(&self, nic: &str) -> Result<(), VmError> {
        if !self.has_device(&vf_id(nic))? {
            return Err(VmError::new(VmErrorKind::NotRunning, "the VM has no such VF"));
        }
        self.unplug(vf_id(nic))
    }

    pub(crate) fn standby_of(&self, nic: &str) -> Result<Standby, VmError> {
        check_name(nic)?;
        let path = format!("{DEVICES}/{}/virtio-backend", nic_id(nic));
        let status = self.request(&Command::QueryVirtioStatus { path })?;
        let is_taken = has_standby(&status).map_err(invalid_reply)?;
        Ok(Standby {
            is_negotiated: is_taken,
            is_driver_ready: is_driver_ready(&status),
            has_vf: self.has_device(&vf_id(nic))?,
        })
    }

    fn has_device(&self, id: &str) -> Result<bool, VmError> {
        let devices = self.request(&Command::QomList { path: DEVICES.to_owned() })?;
        let devices = qom_properties(&devices).map_err(invalid_reply)?;
        Ok(devices.iter().any(|device| device.name == id))
    }
}

fn check_name(nic: &str) -> Result<(), VmError> {
    if is_name(nic) {
        return Ok(());
    }
    Err(VmError::new(VmErrorKind::Refused, format!("{nic:?} is not a valid name of a NIC")))
}
