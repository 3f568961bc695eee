//! [`VhostUserDisk`]: a vhost-user disk of a VM, as its owner uses it.

use std::sync::Arc;

use suimon_ports::{
    DeviceError, DeviceErrorKind, DeviceStatus, DiskObserver, DiskQueueHost, NegotiatedFeatures,
    VhostUserDiskSpec, VhostUserDiskStatus,
};
use suimon_quantity::DiskId;
use suimon_ring::{DiskDescription, DiskProperties, RingFeatures, SECTOR_BYTES, SERIAL_BYTES};
use virtio_bindings::virtio_blk::VIRTIO_BLK_F_CONFIG_WCE;

use crate::acceptor;
use crate::control::ChangeableState;
use crate::device_owner::{DeviceOwner, DiskOwner};
use crate::features::FeatureOffer;
use crate::model::DiskModel;
use crate::open_device::{OpenDevice, VhostUserThreads};

/// Maximum number of queues of a disk.
const QUEUES_MAX: u16 = 64;
/// Maximum logical sector size in bytes that guest drivers support.
const SECTOR_BYTES_MAX: u32 = 4096;
/// Maximum physical sector size in logical sectors: the maximum of `min_io_size`.
const PHYSICAL_SECTORS_MAX: u32 = 1 << 15;

/// Disk of a VM over vhost-user. Dropping it detaches its queues, closes the connection and removes
/// the socket file.
pub struct VhostUserDisk {
    served: OpenDevice,
    properties: Arc<DiskProperties>,
}

impl VhostUserDisk {
    /// Opens the disk: listens on its socket, or starts to connect to it. Attaches a ring to `host`
    /// when a front-end has configured it.
    ///
    /// If a running VM reconnects to another process, it is unknown whether its driver chose
    /// write-through. All writes are then written through until the driver is reinitialised or
    /// chooses again.
    ///
    /// # Errors
    /// The socket cannot be bound, no descriptor is free, the specification is invalid, or it lacks
    /// features or queues that the VM has negotiated.
    pub fn open(
        disk: DiskId,
        spec: &VhostUserDiskSpec,
        host: Arc<dyn DiskQueueHost>,
        observer: Arc<dyn DiskObserver>,
        threads: &VhostUserThreads,
    ) -> Result<Self, DeviceError> {
        check(spec)?;
        let properties = Arc::new(DiskProperties::new(&DiskDescription {
            bytes: spec.size_bytes,
            sector_bytes: spec.sector_bytes,
            is_read_only: spec.is_read_only,
            serial: spec.serial.clone(),
        }));
        let may_write_through = RingFeatures(spec.negotiated.features).has(VIRTIO_BLK_F_CONFIG_WCE);
        properties.set_write_back(!may_write_through);
        let physical_sector_bytes = spec.physical_sector_bytes;
        let model =
            DiskModel { disk, host, properties: Arc::clone(&properties), physical_sector_bytes };
        let subject = DeviceOwner::Disk(DiskOwner { model, observer, spec: spec.clone() });
        let changing =
            ChangeableState { status: DeviceStatus::default(), negotiated: spec.negotiated };
        let served = OpenDevice::open(subject, changing, (&spec.socket, spec.mode), threads)?;
        Ok(Self { served, properties })
    }

    /// Checks whether [`VhostUserDisk::open`] could succeed, without changing anything.
    ///
    /// # Errors
    /// The error that `open` would return.
    pub fn probe(spec: &VhostUserDiskSpec) -> Result<(), DeviceError> {
        check(spec)?;
        acceptor::probe(&spec.socket, spec.mode)
    }

    /// Returns the number of running queues, and the negotiated features.
    pub fn status(&self) -> VhostUserDiskStatus {
        let status = &self.served.shared.changeable_state().status;
        VhostUserDiskStatus { queues: status.queue_pairs, features: status.virtio_features }
    }

    /// Changes the capacity to `bytes` while the disk is open: later requests are checked against
    /// it, and a running guest is notified. Accepted requests are not affected; the caller waits
    /// for them before it shrinks a disk.
    ///
    /// # Errors
    /// The length is invalid; the disk is unchanged.
    pub fn resize(&self, bytes: u64) -> Result<(), DeviceError> {
        check_length(bytes, self.properties.sector_bytes())?;
        if self.properties.bytes() != bytes {
            self.properties.resize(bytes);
            self.served.shared.wake_control();
        }
        Ok(())
    }
}

/// Checks that the specification is valid, and that it has the features and queues that the VM has
/// negotiated.
fn check(spec: &VhostUserDiskSpec) -> Result<(), DeviceError> {
    if !(1..=QUEUES_MAX).contains(&spec.queues) {
        let detail = format!("{} queues are outside of 1 to {QUEUES_MAX}", spec.queues);
        return Err(refused("queues", detail));
    }
    let sector_bytes = spec.sector_bytes;
    let sizes = SECTOR_BYTES as u32..=SECTOR_BYTES_MAX;
    if !sector_bytes.is_power_of_two() || !sizes.contains(&sector_bytes) {
        let detail = format!(
            "logical sectors of {sector_bytes} bytes are not supported; use 512, 1024, 2048 or \
             4096"
        );
        return Err(refused("sector_bytes", detail));
    }
    let physical = spec.physical_sector_bytes;
    if !physical.is_power_of_two()
        || physical < sector_bytes
        || physical / sector_bytes > PHYSICAL_SECTORS_MAX
    {
        let detail = format!(
            "physical sectors of {physical} bytes are not supported; use a power of two from \
             {sector_bytes} to {PHYSICAL_SECTORS_MAX} times as much"
        );
        return Err(refused("physical_sector_bytes", detail));
    }
    if spec.serial.len() > SERIAL_BYTES || !spec.serial.is_ascii() {
        let detail = format!("the serial number {:?} exceeds 20 bytes of ASCII", spec.serial);
        return Err(refused("serial", detail));
    }
    check_length(spec.size_bytes, sector_bytes)?;
    check_negotiated(spec)
}

fn check_length(bytes: u64, sector_bytes: u32) -> Result<(), DeviceError> {
    if bytes % u64::from(sector_bytes) == 0 {
        return Ok(());
    }
    let detail =
        format!("the size of the disk, {bytes} bytes, is not a multiple of {sector_bytes}");
    Err(refused("bytes", detail))
}

fn check_negotiated(spec: &VhostUserDiskSpec) -> Result<(), DeviceError> {
    let NegotiatedFeatures { features, queue_pairs } = spec.negotiated;
    let way_out = "shut down the VM, then remove the disk from it and add it again";
    if queue_pairs > spec.queues {
        let detail = format!(
            "the VM of this disk uses {queue_pairs} queues, but only {} would remain after it \
             reconnects; {way_out}",
            spec.queues
        );
        return Err(refused("queues", detail));
    }
    let missing =
        features & !FeatureOffer::for_disk(spec.queues, spec.is_read_only, features).features;
    if missing != 0 {
        let detail = format!(
            "the VM of this disk has negotiated virtio features {features:#x}, of which \
             {missing:#x} would be missing after it reconnects; {way_out}"
        );
        return Err(refused("is_read_only", detail));
    }
    Ok(())
}

fn refused(field: &'static str, detail: String) -> DeviceError {
    DeviceError { kind: DeviceErrorKind::Unsupported, field, detail }
}
