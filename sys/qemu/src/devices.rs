//! QEMU objects of a VM's NICs and disks, for start and hot-plug.

use std::path::Path;

use suimon_ports::{VmAccelerator, VmDevice, VmDiskKind, VmDiskSpec, VmNicKind, VmNicSpec};
use suimon_qmp::{BlockNode, Command, DeviceArguments, Netdev, ReconnectOption, Version};
use suimon_quantity::PciAddress;

use crate::spec_check::is_name;

/// Time in seconds for which a guest's requests are queued while a disk's NBD server is
/// unavailable. Sufficient for a manual replacement of the daemon.
const NBD_WAITS: u32 = 600;
/// Number of descriptors of each virtqueue of a NIC. QEMU's default of 256 is too small for 64 KB
/// frames.
const RING_SIZE: u16 = 1024;

/// QEMU object that connects a device to its socket. Added before the device and removed after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Chardev { id: String, path: String, reconnect: ReconnectOption },
    Netdev(Netdev),
    Block(BlockNode),
}

impl Backend {
    /// Returns the QMP command that adds the object to a running VM.
    pub(crate) fn add_command(&self) -> Command {
        match self.clone() {
            Self::Chardev { id, path, reconnect } => Command::ChardevAdd { id, path, reconnect },
            Self::Netdev(netdev) => Command::NetdevAdd(netdev),
            Self::Block(node) => Command::BlockdevAdd(node),
        }
    }

    /// Returns the QMP command that removes the object.
    pub(crate) fn remove_command(&self) -> Command {
        match self.clone() {
            Self::Chardev { id, .. } => Command::ChardevRemove { id },
            Self::Netdev(Netdev::VhostUser { id, .. } | Netdev::Stream { id, .. }) => {
                Command::NetdevDel { id }
            }
            Self::Block(BlockNode::Nbd { name, .. } | BlockNode::File { name, .. }) => {
                Command::BlockdevDel { name }
            }
        }
    }
}

/// Device and the objects it needs, in the order in which they are added.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeviceAttachment {
    pub(crate) id: String,
    pub(crate) backends: Vec<Backend>,
    pub(crate) device: DeviceArguments,
}

/// Properties of a VM's QEMU that determine the arguments of devices: its version and accelerator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QemuProperties {
    pub(crate) version: Version,
    pub(crate) accelerator: VmAccelerator,
}

pub(crate) fn nic_id(name: &str) -> String {
    format!("nic-{name}")
}

pub(crate) fn disk_id(name: &str) -> String {
    format!("disk-{name}")
}

/// Returns the QEMU device id of the virtual function (VF) for which a NIC is the standby. All
/// consecutive VFs of a NIC use the same id, because QEMU identifies the primary device by the id
/// of the first one.
pub(crate) fn vf_id(nic: &str) -> String {
    format!("vf-{nic}")
}

/// Returns the hot-pluggable device with this QEMU id; `None` if the id is not that of one.
pub(crate) fn device_of(id: &str) -> Option<VmDevice> {
    let (kind, name) = id.split_once('-').filter(|(_, name)| is_name(name))?;
    match kind {
        "nic" => Some(VmDevice::Nic(name.to_owned())),
        "disk" => Some(VmDevice::Disk(name.to_owned())),
        _ => None,
    }
}

/// Returns the id of a root port, behind which a device can be hot-plugged.
pub(crate) fn port_id(number: usize) -> String {
    format!("port{number}")
}

/// Returns the block node name of a disk. QEMU permits 31 bytes, less than the name of a disk may
/// have, so that the node name contains a hash (FNV-1a, 64 bits). QEMU rejects the second of two
/// names with the same hash.
pub(crate) fn node_name(disk: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("disk-{:016x}", disk.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl QemuProperties {
    /// Returns the number of MSI-X vectors for a vhost-user device that needs `required`: 0, an
    /// interrupt line instead, without KVM. Without KVM, QEMU (7.2, and probably later versions)
    /// crashes when a guest masks a vector of such a device.
    const fn vectors(self, required: u16) -> u16 {
        match self.accelerator {
            VmAccelerator::Kvm => required,
            VmAccelerator::Tcg => 0,
        }
    }

    /// Returns the QEMU objects of a NIC on the bus with the id `bus`.
    pub(crate) fn nic(self, nic: &VmNicSpec, bus: &str) -> DeviceAttachment {
        let id = nic_id(&nic.name);
        let path = text(&nic.socket);
        let (backends, device) = match nic.kind {
            VmNicKind::Virtio => {
                let reconnect = ReconnectOption::for_chardev(self.version);
                let chardev = Backend::Chardev { id: id.clone(), path, reconnect };
                let queues = nic.queue_pairs;
                let netdev =
                    Netdev::VhostUser { id: id.clone(), chardev: id.clone(), queue_pairs: queues };
                let mut device = DeviceArguments::new("virtio-net-pci")
                    .with("mq", queues > 1)
                    .with("vectors", self.vectors(queues * 2 + 2))
                    .with("rx_queue_size", RING_SIZE)
                    .with("tx_queue_size", RING_SIZE);
                if nic.is_standby {
                    device = device.with("failover", true);
                }
                (vec![chardev, Backend::Netdev(netdev)], device)
            }
            VmNicKind::Legacy => {
                let reconnect = ReconnectOption::for_stream(self.version);
                let netdev = Netdev::Stream { id: id.clone(), path, reconnect };
                (vec![Backend::Netdev(netdev)], DeviceArguments::new("e1000e"))
            }
        };
        // The ROM for network boot is omitted: QEMU's packages do not require its file.
        let mut device = device
            .with("id", id.as_str())
            .with("bus", bus)
            .with("netdev", id.as_str())
            .with("romfile", "");
        if let Some(mac) = nic.mac {
            device = device.with("mac", mac.to_string());
        }
        DeviceAttachment { id, backends, device }
    }

    /// Returns the arguments of the VF for which the NIC `nic` is the standby. QEMU exposes the VF
    /// only to a guest whose driver supports failover (virtio 1.3, `VIRTIO_NET_F_STANDBY`).
    pub(crate) fn vf(nic: &str, address: PciAddress, bus: &str) -> DeviceArguments {
        DeviceArguments::new("vfio-pci")
            .with("id", vf_id(nic))
            .with("bus", bus)
            .with("host", address.to_string())
            .with("failover_pair_id", nic_id(nic))
            .with("rombar", 0)
    }

    /// Returns the QEMU objects of a virtio disk on the bus with the id `bus`.
    pub(crate) fn virtio_disk(
        self,
        name: &str,
        socket: &Path,
        queues: u16,
        bus: &str,
    ) -> DeviceAttachment {
        let id = disk_id(name);
        let reconnect = ReconnectOption::for_chardev(self.version);
        let chardev = Backend::Chardev { id: id.clone(), path: text(socket), reconnect };
        let device = DeviceArguments::new("vhost-user-blk-pci")
            .with("id", id.as_str())
            .with("bus", bus)
            .with("chardev", id.as_str())
            .with("num-queues", queues)
            .with("vectors", self.vectors(queues + 1));
        DeviceAttachment { id, backends: vec![chardev], device }
    }

    /// Returns the QEMU objects of an emulated disk as unit `unit` of the IDE or SATA bus `bus`;
    /// `None` for a virtio disk.
    pub(crate) fn emulated_disk(
        self,
        disk: &VmDiskSpec,
        bus: &str,
        unit: u32,
    ) -> Option<DeviceAttachment> {
        let (VmDiskKind::Ide { socket } | VmDiskKind::Sata { socket }) = &disk.kind else {
            return None;
        };
        let (id, name) = (disk_id(&disk.name), node_name(&disk.name));
        let mut device = DeviceArguments::new("ide-hd")
            .with("id", id.as_str())
            .with("bus", bus)
            .with("unit", unit)
            .with("drive", name.as_str())
            .with("werror", if disk.reports_full_to_guest { "report" } else { "enospc" });
        if !disk.serial.is_empty() {
            device = device.with("serial", disk.serial.as_str());
        }
        let node = BlockNode::Nbd {
            name,
            path: text(socket),
            export: disk.name.clone(),
            reconnect_delay_s: NBD_WAITS,
        };
        Some(DeviceAttachment { id, backends: vec![Backend::Block(node)], device })
    }
}
