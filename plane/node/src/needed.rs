//! Host resources that a change acquires, and their present holders.
//!
//! Ports and disks use the same resources: a NIC may get the socket path of a former disk and vice
//! versa. All holders of a required resource are closed before the first device is opened.

use std::collections::BTreeSet;
use std::path::PathBuf;

use suimon_ports::PortSpec;

use crate::disks::{WantedDisk, WantedDisks};
use crate::wanted::{Claim, WantedPorts, claim};

/// Host resources that a change acquires.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// Resources that one port or disk will hold exclusively.
    alone: BTreeSet<Claim>,
    /// Sockets of NBD exports, which several disks share.
    shared: BTreeSet<PathBuf>,
}

impl Needed {
    /// Returns the resources that the transition from the first to the second set of ports and
    /// disks acquires.
    pub(crate) fn of(
        ports: (&WantedPorts, &WantedPorts),
        disks: (&WantedDisks, &WantedDisks),
    ) -> Self {
        let mut needed = Self::default();
        let (before, after) = ports;
        for (key, spec) in after {
            let held = before.get(key).map(claim);
            if before.get(key) != Some(spec) && held.as_ref() != Some(&claim(spec)) {
                needed.alone.insert(claim(spec));
            }
        }
        let (before, after) = disks;
        for (name, wanted) in after {
            match before.get(name) {
                Some(old) if old == wanted => continue,
                Some(old) if old.can_become(wanted) => {}
                _ => needed.alone.extend(wanted.claims()),
            }
            needed.shared.extend(wanted.nbd_socket());
        }
        needed
    }

    /// Returns true if a port that is removed holds one of the resources.
    pub(crate) fn is_held_by_port(&self, spec: &PortSpec) -> bool {
        let held = claim(spec);
        let is_shared = matches!(&held, Claim::Socket(path) if self.shared.contains(path));
        is_shared || self.alone.contains(&held)
    }

    /// Returns true if a disk that is removed holds one of the resources.
    pub(crate) fn is_held_by_disk(&self, disk: &WantedDisk) -> bool {
        let is_shared =
            |held: &Claim| matches!(held, Claim::Socket(path) if self.shared.contains(path));
        disk.claims().iter().any(|held| self.alone.contains(held) || is_shared(held))
            || self.is_nbd_in_the_way(disk)
    }

    /// Returns true if the NBD socket of `disk` will be held exclusively by another port or disk.
    pub(crate) fn is_nbd_in_the_way(&self, disk: &WantedDisk) -> bool {
        disk.nbd_socket().is_some_and(|path| self.alone.contains(&Claim::Socket(path)))
    }
}
