//! Devices of VMs in the configuration of a host.

use std::path::PathBuf;

use crate::vm_config::VmConfig;
use crate::{DiskConfig, DiskVhostUser, HostConfig, Name, NicConfig, SocketMode};

impl HostConfig {
    /// Returns the VM with this name.
    pub fn vm(&self, name: &str) -> Option<&VmConfig> {
        self.vms.iter().find(|vm| vm.name.as_str() == name)
    }

    /// Returns the VM that the NIC belongs to.
    pub fn vm_of_nic(&self, nic: &Name) -> Option<&VmConfig> {
        self.vms.iter().find(|vm| vm.nics.contains(nic))
    }

    /// Returns the VM that the disk belongs to.
    pub fn vm_of_disk(&self, disk: &Name) -> Option<&VmConfig> {
        self.vms.iter().find(|vm| vm.disks.contains(disk))
    }

    /// Returns the path of a NIC's socket: the configured one, or the default in the folder of its
    /// VM. `None` for other backends, and without either.
    pub fn socket_of_nic(&self, nic: &NicConfig) -> Option<PathBuf> {
        if !nic.has_socket() {
            return None;
        }
        let of_vm = || Some(self.vm_of_nic(&nic.name)?.nic_socket(&self.host, &nic.name));
        nic.socket.clone().or_else(of_vm)
    }

    /// Returns true if the NIC has a TAP device, a configured socket or a VM. A NIC without any of
    /// them exchanges no frames.
    pub fn is_connected(&self, nic: &NicConfig) -> bool {
        !nic.has_socket() || self.socket_of_nic(nic).is_some()
    }

    /// Returns the vhost-user settings of a disk: the configured ones, or a default socket in the
    /// folder of its VM. `None` without either.
    pub fn vhost_user_of_disk(&self, disk: &DiskConfig) -> Option<DiskVhostUser> {
        let of_vm = || {
            if disk.controller.is_emulated() {
                return None;
            }
            let socket = self.vm_of_disk(&disk.name)?.disk_socket(&self.host, &disk.name);
            Some(DiskVhostUser { socket, mode: SocketMode::Server, queues: 1 })
        };
        disk.vhost_user.clone().or_else(of_vm)
    }

    /// Returns the socket in the VM's folder over which the VM's QEMU accesses a disk with an
    /// emulated controller as an NBD client. `None` for other disks.
    pub fn emulated_disk_socket(&self, disk: &DiskConfig) -> Option<PathBuf> {
        let vm = self.vm_of_disk(&disk.name).filter(|_| disk.controller.is_emulated())?;
        Some(vm.disk_socket(&self.host, &disk.name))
    }

    /// Returns a copy in which each NIC and disk of a VM has the socket that it derives from the VM
    /// as its configured one.
    pub fn with_sockets_of_vms(&self) -> Self {
        let mut full = self.clone();
        for nic in &mut full.nics {
            nic.socket = self.socket_of_nic(nic).or(nic.socket.take());
        }
        for disk in &mut full.disks {
            disk.vhost_user = self.vhost_user_of_disk(disk);
        }
        full
    }
}
