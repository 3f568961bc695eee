//! What a change takes anew of the host, and who has to let go of it before.
//!
//! Ports and disks share one host: a NIC may get the socket that a disk had, and the other
//! way round. All that is in the way of something new is closed before anything is opened.

use std::collections::BTreeSet;
use std::path::PathBuf;

use suimon_ports::PortSpec;

use crate::disks::{WantedDisk, WantedDisks};
use crate::wanted::{Claim, WantedPorts, claim};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// What one port or disk is to have for itself.
    alone: BTreeSet<Claim>,
    /// Sockets for NBD clients, which disks share.
    shared: BTreeSet<PathBuf>,
}

impl Needed {
    /// What the way from these ports and disks to those takes.
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

    /// Whether a port that goes has something of it.
    pub(crate) fn is_held_by_port(&self, spec: &PortSpec) -> bool {
        let held = claim(spec);
        let is_shared = matches!(&held, Claim::Socket(path) if self.shared.contains(path));
        is_shared || self.alone.contains(&held)
    }

    /// Whether a disk that goes has something of it.
    pub(crate) fn is_held_by_disk(&self, disk: &WantedDisk) -> bool {
        let is_shared =
            |held: &Claim| matches!(held, Claim::Socket(path) if self.shared.contains(path));
        disk.claims().iter().any(|held| self.alone.contains(held) || is_shared(held))
            || self.is_nbd_in_the_way(disk)
    }

    /// Whether somebody is to have for himself the socket on which a disk is offered to NBD
    /// clients.
    pub(crate) fn is_nbd_in_the_way(&self, disk: &WantedDisk) -> bool {
        disk.nbd_socket().is_some_and(|path| self.alone.contains(&Claim::Socket(path)))
    }
}
