//! Virtual functions (VFs) of a running VM's NICs: hot-plug beside the standby NIC, hot-unplug,
//! release.
//!
//! An assignment is recorded before the VF is touched, so that the next daemon finds it, and
//! deleted once the VF is released.

mod driving;
mod returning;
mod unreturned;

use std::collections::BTreeMap;
use std::time::Instant;

use suimon_contract::Name;

pub(super) use self::unreturned::UnreturnedVfs;
use crate::virtual_functions::VfAddress;

/// Order of the control thread about a NIC's VF.
#[derive(Clone, Debug)]
pub(crate) enum VfOrder {
    /// Plug the VF into the VM.
    Plug { nic: Name, vf: VfAddress },
    /// Unplug the VF from the VM.
    Unplug { nic: Name, vf: VfAddress },
}

/// State of a running VM's VFs that is not recorded.
#[derive(Debug, Default)]
pub(super) struct VmVfs {
    /// Standby NICs whose guest driver has negotiated `VIRTIO_NET_F_STANDBY`.
    pub(super) failover_nics: std::collections::BTreeSet<Name>,
    /// VFs that are plugged and not yet present in the guest.
    plugging: BTreeMap<Name, VfAddress>,
    /// VFs whose hot-unplug was requested.
    unplugging: BTreeMap<Name, VfAddress>,
    /// Time of the next query of standby NICs whose failover state is expected to change.
    pub(super) next_query_at: Option<Instant>,
    /// Time of the next query of all standby NICs: since a reset, the guest may have another
    /// driver.
    pub(super) next_verification_at: Option<Instant>,
}
