//! Host resources that one port or disk holds exclusively, and those that a change acquires.
//!
//! Ports and disks use the same resources: a NIC may get the socket path of a former disk and vice
//! versa. All holders of a resource that a change acquires are closed before the first device is
//! opened.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Host resource that only one port or disk can hold at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExclusiveResource {
    /// Unix socket, by its path.
    Socket(PathBuf),
    /// Network device in a network namespace.
    Device(NetworkDeviceId),
    /// File of a disk, or a block device.
    File(PathBuf),
}

/// Network device, by network namespace (`None`: the daemon's) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetworkDeviceId {
    /// Network namespace; `None`: the daemon's.
    pub netns: Option<String>,
    /// Name of the claimed network device.
    pub device: String,
}

/// Returns the path without `.` components and repeated separators, so that paths of the same
/// socket compare equal.
pub fn normalize_path(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Host resources that a change acquires.
#[derive(Debug, Default)]
pub struct AcquiredResources {
    /// Resources that one port or disk will hold exclusively.
    exclusive: BTreeSet<ExclusiveResource>,
    /// Sockets of NBD exports, which several disks share.
    shared_sockets: BTreeSet<PathBuf>,
}

impl AcquiredResources {
    /// Adds resources that one port or disk will hold exclusively.
    pub fn add_exclusive(&mut self, claims: impl IntoIterator<Item = ExclusiveResource>) {
        self.exclusive.extend(claims);
    }

    /// Adds sockets that several disks will share.
    pub fn add_shared_sockets(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.shared_sockets.extend(paths);
    }

    /// Returns true if the change acquires the resource, exclusively or as a shared socket. A
    /// holder that is removed must be closed first.
    pub fn contains(&self, resource: &ExclusiveResource) -> bool {
        let is_shared = matches!(resource, ExclusiveResource::Socket(path) if self.shared_sockets.contains(path));
        is_shared || self.exclusive.contains(resource)
    }

    /// Returns true if one port or disk will hold the resource exclusively.
    pub fn contains_exclusive(&self, resource: &ExclusiveResource) -> bool {
        self.exclusive.contains(resource)
    }
}
