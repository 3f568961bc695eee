//! Disks of a configuration, with everything that opening them needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use suimon_contract::{
    DiskConfig, DiskFormat, DiskKind, DiskOnFull, HostConfig, Name, SocketMode, StoreConfig,
    StoreFile,
};
use suimon_image::DiskGeometry;
use suimon_ports::{FileName, NegotiatedFeatures, VhostUserDiskSpec, VhostUserMode};
use suimon_storage_engine::FullStorePolicy;

use crate::transaction::{AcquiredResources, ExclusiveResource, normalize_path};

/// Configured disk and its store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequiredDisk {
    pub(crate) config: DiskConfig,
    pub(crate) store: StoreConfig,
    /// VM that uses the disk.
    pub(crate) vm: Option<Name>,
    /// Socket by which the VM's QEMU is an NBD client of the disk; `None` unless QEMU emulates the
    /// disk's controller.
    pub(crate) emulator_socket: Option<PathBuf>,
}

pub(crate) type RequiredDisks = BTreeMap<Name, RequiredDisk>;

/// Returns the disks of a configuration. A disk whose store is not configured is left out.
pub(crate) fn required_disks(config: &HostConfig) -> RequiredDisks {
    let config = config.with_derived_sockets();
    let store = |name: &Name| config.stores.iter().find(|store| store.name == *name);
    let required = config.disks.iter().filter_map(|disk| {
        let store = store(&disk.store)?.clone();
        let emulated = config.emulated_disk_socket(disk);
        let vm = config.vm_of_disk(&disk.name).map(|vm| vm.name.clone());
        Some((
            disk.name.clone(),
            RequiredDisk { config: disk.clone(), store, vm, emulator_socket: emulated },
        ))
    });
    required.collect()
}

/// Returns the socket files that opening these disks creates.
pub(crate) fn required_sockets(required: &RequiredDisks) -> BTreeSet<PathBuf> {
    required.values().flat_map(RequiredDisk::sockets).collect()
}

/// Returns the socket files that a new daemon takes over from a killed one. Other socket files must
/// be removed before they are opened.
pub(crate) fn taken_over_sockets(required: &RequiredDisks) -> BTreeSet<PathBuf> {
    required.values().filter_map(RequiredDisk::vhost_user_socket).collect()
}

#[cfg(test)]
std::thread_local! {
    /// Number of calls of [`RequiredDisk::image_path`] in this thread, for tests.
    pub(super) static IMAGE_PATHS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl RequiredDisk {
    /// Returns a copy in which all keys that may change in service have fixed values.
    fn without_live_keys(&self) -> Self {
        let mut fixed = self.clone();
        let config = &mut fixed.config;
        config.size_bytes = None;
        config.block_bytes = None;
        config.qos_policy = None;
        config.qos = Default::default();
        config.nbd = None;
        (config.on_full, config.full_wait_s) = Default::default();
        config.file = config.effective_file();
        config.kind = Some(config.kind_of_new_file());
        fixed.vm = None;
        fixed.store.capacity_iops = None;
        fixed.store.shared = false;
        fixed.store.full_warning_percent = 0;
        fixed
    }

    /// Returns the path of the image file or block device.
    pub(super) fn image_path(&self) -> PathBuf {
        #[cfg(test)]
        IMAGE_PATHS.set(IMAGE_PATHS.get() + 1);
        normalize_path(&self.config.path_in(&self.store))
    }

    /// Returns true if the disk can change to this configuration while it is in service.
    pub(crate) fn can_change_live(&self, other: &Self) -> bool {
        self.without_live_keys() == other.without_live_keys()
    }

    /// Returns the full-store policy: whether requests are queued or fail if the store is full.
    pub(crate) fn full_policy(&self) -> FullStorePolicy {
        match self.config.on_full {
            DiskOnFull::Error => FullStorePolicy::FAIL_AT_ONCE,
            DiskOnFull::Wait => FullStorePolicy {
                ring_wait: None,
                client_wait: Duration::from_secs(self.config.full_wait_s.into()),
            },
        }
    }

    /// Returns the file and sockets that only this disk may use.
    pub(crate) fn exclusive_resources(&self) -> BTreeSet<ExclusiveResource> {
        let file = match self.config.effective_file() {
            Some(file) => self.store.path.join(file.as_str()),
            None => self.store.path.clone(),
        };
        let vhost_user = self.config.vhost_user.as_ref().map(|vhost_user| &vhost_user.socket);
        let sockets = vhost_user.into_iter().chain(&self.emulator_socket);
        let sockets = sockets.map(|socket| ExclusiveResource::Socket(normalize_path(socket)));
        std::iter::once(ExclusiveResource::File(normalize_path(&file))).chain(sockets).collect()
    }

    /// Returns the Unix socket on which the disk is exported by NBD. Other disks may share it.
    pub(crate) fn nbd_socket(&self) -> Option<PathBuf> {
        self.config.nbd.as_ref()?.socket.as_deref().map(normalize_path)
    }

    /// Returns true if the disk holds a resource that a change acquires, so that a removed disk
    /// must be closed first.
    pub(crate) fn uses_any(&self, acquired: &AcquiredResources) -> bool {
        self.exclusive_resources().iter().any(|claim| acquired.contains(claim))
            || self.is_nbd_acquired(acquired)
    }

    /// Returns true if another port or disk will hold the disk's NBD socket exclusively.
    pub(crate) fn is_nbd_acquired(&self, acquired: &AcquiredResources) -> bool {
        self.nbd_socket()
            .is_some_and(|path| acquired.contains_exclusive(&ExclusiveResource::Socket(path)))
    }

    /// Returns the socket files that opening the disk creates.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        let nbd = self.config.nbd.as_ref().and_then(|nbd| nbd.socket.clone());
        self.vhost_user_socket()
            .into_iter()
            .chain(nbd)
            .chain(self.emulator_socket.clone())
            .collect()
    }

    fn vhost_user_socket(&self) -> Option<PathBuf> {
        let listened = self
            .config
            .vhost_user
            .as_ref()
            .filter(|vhost_user| vhost_user.mode == SocketMode::Server);
        listened.map(|vhost_user| vhost_user.socket.clone())
    }

    /// Returns the configuration of the disk's image, by which [`suimon_image_files`] opens or
    /// creates it.
    pub(crate) fn plan(&self) -> suimon_image_files::DiskPlan {
        let config = &self.config;
        suimon_image_files::DiskPlan {
            format: disk_format(config.format),
            kind: config.required_kind().map(disk_kind),
            file: config.effective_file().as_ref().and_then(file_name),
            size_bytes: config.size_bytes.map(suimon_contract::ByteSize::bytes),
            parent: config.parent.as_ref().and_then(file_name),
            is_read_only: config.read_only,
            logical_sector_bytes: config.logical_sector_bytes,
            physical_sector_bytes: config.physical_sector_bytes.max(config.logical_sector_bytes),
            block_bytes: config.block_bytes.map(suimon_contract::ByteSize::bytes),
        }
    }

    /// Returns the specification of the vhost-user device; `None` if the disk has none. `shape`:
    /// properties of the open image.
    pub(crate) fn vhost_user(
        &self,
        shape: DiskGeometry,
        negotiated: NegotiatedFeatures,
    ) -> Option<VhostUserDiskSpec> {
        let vhost_user = self.config.vhost_user.as_ref()?;
        Some(VhostUserDiskSpec {
            socket: vhost_user.socket.clone(),
            mode: match vhost_user.mode {
                SocketMode::Server => VhostUserMode::Server,
                SocketMode::Client => VhostUserMode::Client,
            },
            queues: vhost_user.queues,
            size_bytes: shape.size_bytes,
            sector_bytes: shape.logical_sector_bytes,
            physical_sector_bytes: shape.physical_sector_bytes.max(shape.logical_sector_bytes),
            serial: self.config.effective_serial(),
            is_read_only: self.config.read_only,
            negotiated,
        })
    }
}

pub(crate) const fn disk_format(format: DiskFormat) -> suimon_image_files::DiskFormat {
    match format {
        DiskFormat::Raw => suimon_image_files::DiskFormat::Raw,
        DiskFormat::Vhd => suimon_image_files::DiskFormat::Vhd,
        DiskFormat::Vhdx => suimon_image_files::DiskFormat::Vhdx,
        DiskFormat::PassThrough => suimon_image_files::DiskFormat::PassThrough,
    }
}

pub(crate) const fn disk_kind(kind: DiskKind) -> suimon_image_files::DiskKind {
    match kind {
        DiskKind::Fixed => suimon_image_files::DiskKind::Fixed,
        DiskKind::Dynamic => suimon_image_files::DiskKind::Dynamic,
        DiskKind::Differencing => suimon_image_files::DiskKind::Differencing,
    }
}

pub(crate) const fn contract_kind(kind: suimon_image_files::DiskKind) -> DiskKind {
    match kind {
        suimon_image_files::DiskKind::Fixed => DiskKind::Fixed,
        suimon_image_files::DiskKind::Dynamic => DiskKind::Dynamic,
        suimon_image_files::DiskKind::Differencing => DiskKind::Differencing,
    }
}

/// Converts a file name to the API type.
pub(crate) fn store_file(name: &FileName) -> Option<StoreFile> {
    name.as_str().parse().ok()
}

/// Converts a file name from the API type. Both types have the same rules.
pub(crate) fn file_name(file: &StoreFile) -> Option<FileName> {
    FileName::new(file.as_str()).ok()
}
