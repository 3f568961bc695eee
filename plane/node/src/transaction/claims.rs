//! Host resources that one port or disk holds exclusively, and those that a change acquires.
//!
//! Ports and disks use the same resources: a NIC may get the socket path of a former disk and vice
//! versa. All holders of a resource that a change acquires are closed before the first device is
//! opened.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use suimon_ports as ports;
use suimon_ports::{PortSpec, VhostUserMode};

/// Host resource that only one port or disk can hold at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// Unix socket, by its path.
    Socket(PathBuf),
    /// Network device in a network namespace.
    Device(Tap),
    /// File of a disk, or a block device.
    File(PathBuf),
}

/// Network device, by network namespace (`None`: the daemon's) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tap {
    pub(crate) netns: Option<String>,
    pub(crate) device: String,
}

/// Returns the host resource that an open device with this specification holds.
pub(crate) fn claim(spec: &PortSpec) -> Claim {
    match spec {
        PortSpec::VhostUser(spec) => Claim::Socket(clean(&spec.socket)),
        PortSpec::Stream(spec) => Claim::Socket(clean(&spec.socket)),
        PortSpec::Tap(spec) => {
            Claim::Device(Tap { netns: spec.netns.clone(), device: spec.device.clone() })
        }
        PortSpec::Uplink(spec) => Claim::Device(Tap { netns: None, device: spec.device.clone() }),
    }
}

/// Returns the TAP that opening a device with this specification creates if the TAP does not exist.
pub(crate) fn tap_of(spec: &PortSpec) -> Option<Tap> {
    match spec {
        PortSpec::Tap(spec) => Some(Tap { netns: spec.netns.clone(), device: spec.device.clone() }),
        PortSpec::Uplink(spec) if spec.driver == ports::UplinkDriver::Tap => {
            Some(Tap { netns: None, device: spec.device.clone() })
        }
        PortSpec::Uplink(_) | PortSpec::VhostUser(_) | PortSpec::Stream(_) => None,
    }
}

/// Returns the path of the socket file that opening a device with this specification creates.
pub(crate) fn socket_of(spec: &PortSpec) -> Option<PathBuf> {
    match spec {
        PortSpec::VhostUser(spec) if spec.mode == VhostUserMode::Server => {
            Some(clean(&spec.socket))
        }
        PortSpec::Stream(spec) => Some(clean(&spec.socket)),
        PortSpec::VhostUser(_) | PortSpec::Tap(_) | PortSpec::Uplink(_) => None,
    }
}

/// Returns the path without `.` components and repeated separators, so that paths of the same
/// socket compare equal.
pub(crate) fn clean(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Host resources that a change acquires.
#[derive(Debug, Default)]
pub(crate) struct Acquired {
    /// Resources that one port or disk will hold exclusively.
    exclusive: BTreeSet<Claim>,
    /// Sockets of NBD exports, which several disks share.
    shared_sockets: BTreeSet<PathBuf>,
}

impl Acquired {
    /// Adds resources that one port or disk will hold exclusively.
    pub(crate) fn add_exclusive(&mut self, claims: impl IntoIterator<Item = Claim>) {
        self.exclusive.extend(claims);
    }

    /// Adds sockets that several disks will share.
    pub(crate) fn add_shared_sockets(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.shared_sockets.extend(paths);
    }

    /// Returns true if the change acquires the resource, exclusively or as a shared socket. A
    /// holder that is removed must be closed first.
    pub(crate) fn contains(&self, held: &Claim) -> bool {
        let is_shared = matches!(held, Claim::Socket(path) if self.shared_sockets.contains(path));
        is_shared || self.exclusive.contains(held)
    }

    /// Returns true if one port or disk will hold the resource exclusively.
    pub(crate) fn contains_exclusive(&self, held: &Claim) -> bool {
        self.exclusive.contains(held)
    }
}
