//! Events for the failover state machine.

use serde::{Deserialize, Serialize};
use suimon_quantity::PortId;

use crate::{AdapterId, VfId};

/// Event about a NIC, a VF or an adapter. The state machine ignores events of unknown objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum FailoverEvent {
    /// A NIC was added or changed.
    NicSet {
        /// NIC that was added or changed.
        nic: PortId,
        /// Weight in the assignment of VFs, 0 (no VF) to 100.
        iov_weight: u8,
        /// Adapters that connect the NIC's switch.
        adapters: Vec<AdapterId>,
    },
    /// A NIC was added whose guest already has a VF, because the daemon was restarted.
    #[serde(rename = "vf_held")]
    VfInUse {
        /// NIC that the VF is assigned to.
        nic: PortId,
        /// Weight, as in [`FailoverEvent::NicSet`].
        iov_weight: u8,
        /// Adapters, as in [`FailoverEvent::NicSet`].
        adapters: Vec<AdapterId>,
        /// VF that the guest has.
        vf: VfId,
    },
    /// A VF was taken from a NIC before the daemon was restarted, and is not free yet.
    #[serde(rename = "vf_not_released")]
    VfUnplugPending {
        /// NIC that the VF was assigned to.
        nic: PortId,
        /// VF that is not free.
        vf: VfId,
    },
    /// A NIC was removed from its switch. Its VF is unplugged.
    NicRemoved {
        /// Identifier of the removed NIC.
        nic: PortId,
    },
    /// A VF exists and can be assigned.
    VfFound {
        /// VF that can be assigned from now on.
        vf: VfId,
    },
    /// A VF no longer exists.
    VfLost {
        /// VF that no longer exists.
        vf: VfId,
    },
    /// A reset of an adapter began: its VFs carry no frames.
    ResetBegan {
        /// Adapter whose reset has begun.
        adapter: AdapterId,
    },
    /// The reset of an adapter has ended.
    ResetEnded {
        /// Adapter whose reset has ended.
        adapter: AdapterId,
    },
    /// The driver of an adapter was unbound: its VFs carry no frames.
    DriverUnbound {
        /// Adapter whose driver was unbound.
        adapter: AdapterId,
    },
    /// A driver was bound to an adapter.
    DriverBound {
        /// Adapter whose driver was bound.
        adapter: AdapterId,
    },
    /// The VM of a NIC is being migrated to another host, where the VF is not available.
    MigrationBegan {
        /// NIC of the VM being migrated.
        nic: PortId,
    },
    /// The migration of a NIC's VM has ended: it arrived here or stays.
    MigrationEnded {
        /// NIC of the VM being migrated.
        nic: PortId,
    },
    /// The guest's driver uses the VF that was hot-plugged for its NIC.
    VfPathReady {
        /// NIC that the VF is assigned to.
        nic: PortId,
        /// VF that is assigned to the NIC.
        vf: VfId,
    },
    /// Hot-plugging a VF failed, or the guest can no longer use it.
    VfPathFailed {
        /// NIC that the VF is assigned to.
        nic: PortId,
        /// VF that is assigned to the NIC.
        vf: VfId,
    },
    /// The hot-unplug of a VF has ended: it can be assigned to another NIC.
    VfReleased {
        /// VF that no guest uses any longer.
        vf: VfId,
    },
}
