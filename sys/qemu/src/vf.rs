//! Virtual functions (VFs) of a VM's NICs: hot-plug and unplug of a VF for which a NIC is the
//! standby.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use suimon_ports::{NicStandbyState, VmError, VmErrorKind};
use suimon_qmp::{Command, decode_driver_ready, decode_qom_properties, decode_standby_negotiated};
use suimon_quantity::PciAddress;

use crate::devices::{QemuProperties, nic_id, vf_id};
use crate::monitor::{REPLY_TIMEOUT, SharedMonitor};
use crate::spec_check::{HOT_PLUG_PORTS_MAX, is_name};
use crate::vm::{QemuVm, invalid_reply};

/// QOM path of the devices that have an id.
const DEVICES: &str = "/machine/peripheral";
/// Time limit for a query of all standby NICs of a VM.
const STANDBYS_LIMIT: Duration = Duration::from_secs(5);

impl QemuVm {
    pub(crate) fn plug_vf(&self, nic: &str, address: PciAddress) -> Result<(), VmError> {
        check_name(nic)?;
        let _plugging = self.hot_plug_lock.lock().unwrap_or_else(PoisonError::into_inner);
        // The search starts at the last port: a VF that QEMU does not expose yet occupies its port
        // invisibly.
        let port = self.find_free_port((0..HOT_PLUG_PORTS_MAX).rev())?;
        self.execute_command(&Command::DeviceAdd(QemuProperties::vf(nic, address, &port)))
    }

    /// Requests that the guest releases the VF of `nic`.
    ///
    /// # Errors
    /// `NotRunning` if the VM does not have the VF; otherwise QEMU's error.
    pub(crate) fn unplug_vf(&self, nic: &str) -> Result<(), VmError> {
        let devices = self.shared().device_ids(REPLY_TIMEOUT)?;
        if !devices.contains(&vf_id(nic)) {
            return Err(VmError::new(VmErrorKind::NotRunning, "the VM has no such VF"));
        }
        self.unplug(vf_id(nic))
    }
}

impl SharedMonitor {
    /// Queries the states of `nics` as standbys of VFs, within [`STANDBYS_LIMIT`] for all. Returns
    /// them by name, without unknown ones.
    pub(crate) fn query_standbys(&self, nics: &[&str]) -> BTreeMap<String, NicStandbyState> {
        let deadline = Instant::now() + STANDBYS_LIMIT;
        let mut standbys = BTreeMap::new();
        let devices = match self.device_ids(STANDBYS_LIMIT) {
            Ok(devices) => devices,
            Err(error) => {
                tracing::debug!(%error, "cannot query the VFs of a VM");
                return standbys;
            }
        };
        for nic in nics {
            match self.standby(nic, &devices, deadline.saturating_duration_since(Instant::now())) {
                Ok(standby) => drop(standbys.insert((*nic).to_owned(), standby)),
                Err(error) => {
                    tracing::debug!(nic, %error, "cannot query the failover of a NIC");
                    // The other queries would fail in the same way.
                    if error.kind != VmErrorKind::Refused {
                        break;
                    }
                }
            }
        }
        standbys
    }

    fn standby(
        &self,
        nic: &str,
        devices: &[String],
        limit: Duration,
    ) -> Result<NicStandbyState, VmError> {
        check_name(nic)?;
        let path = format!("{DEVICES}/{}/virtio-backend", nic_id(nic));
        let status = self.query(&Command::QueryVirtioStatus { path }, limit)?;
        Ok(NicStandbyState {
            is_negotiated: decode_standby_negotiated(&status).map_err(invalid_reply)?,
            is_driver_ready: decode_driver_ready(&status),
            has_vf: devices.contains(&vf_id(nic)),
        })
    }

    /// Returns the ids of all devices that have one.
    fn device_ids(&self, limit: Duration) -> Result<Vec<String>, VmError> {
        let devices = self.query(&Command::QomList { path: DEVICES.to_owned() }, limit)?;
        let devices = decode_qom_properties(&devices).map_err(invalid_reply)?;
        Ok(devices.into_iter().map(|device| device.name).collect())
    }
}

fn check_name(nic: &str) -> Result<(), VmError> {
    if is_name(nic) {
        return Ok(());
    }
    Err(VmError::new(VmErrorKind::Refused, format!("{nic:?} is not a valid name of a NIC")))
}
