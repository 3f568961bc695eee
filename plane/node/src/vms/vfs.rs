//! Virtual functions (VFs) of a running VM's NICs: hot-plug beside the standby NIC, hot-unplug,
//! release.
//!
//! An assignment is recorded before the VF is touched, so that the next daemon finds it, and
//! deleted once the VF is released.

mod driving;

use std::collections::BTreeMap;
use std::time::Instant;

use suimon_contract::Name;

use crate::virtual_functions::VfPlace;

/// Order of the control thread about a NIC's VF.
#[derive(Clone, Debug)]
pub(crate) enum VfOrder {
    /// Plug the VF into the VM.
    Give { nic: Name, vf: VfPlace },
    /// Unplug the VF from the VM.
    Take { nic: Name, vf: VfPlace },
}

/// State of a running VM's VFs that is not recorded.
#[derive(Debug, Default)]
pub(super) struct RunVfs {
    /// Standby NICs whose guest driver has negotiated `VIRTIO_NET_F_STANDBY`.
    pub(super) takers: std::collections::BTreeSet<Name>,
    /// VFs that are plugged and not yet present in the guest.
    offered: BTreeMap<Name, VfPlace>,
    /// VFs whose hot-unplug was requested.
    leaving: BTreeMap<Name, VfPlace>,
    pub(super) ask_at: Option<Instant>,
}
