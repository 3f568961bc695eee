//! Events for the state machine.

use serde::{Deserialize, Serialize};
use suimon_quantity::PortId;

use crate::{AdapterId, VfId};

/// Event about NICs, VFs and adapters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A NIC was added or changed.
    NicSet {
        /// NIC that was set.
        nic: PortId,
        /// Weight in the assignment of VFs, 0 (no VF) to 100.
        iov_weight: u8,
        /// Adapters that connect the NIC's switch.
        adapters: Vec<AdapterId>,
    },
    /// A NIC was added whose guest already has a VF, because the daemon was restarted.
    VfHeld {
        /// NIC with the VF.
        nic: PortId,
        /// Weight, as in [`Event::NicSet`].
        iov_weight: u8,
        /// Adapters, as in [`Event::NicSet`].
        adapters: Vec<AdapterId>,
        /// VF that the guest has.
        vf: VfId,
    },
    /// A NIC was removed.
    NicRemoved {
        /// NIC that was removed.
        nic: PortId,
    },
    /// A VF exists and can be assigned.
    VfFound {
        /// VF that was found.
        vf: VfId,
    },
    /// A VF no longer exists.
    VfLost {
        /// VF that was lost.
        vf: VfId,
    },
    /// A reset of an adapter began: its VFs carry no frames.
    ResetBegan {
        /// Adapter being reset.
        adapter: AdapterId,
    },
    /// The reset of an adapter has ended.
    ResetEnded {
        /// Adapter that was reset.
        adapter: AdapterId,
    },
    /// An adapter has no driver: its VFs carry no frames.
    DriverUnbound {
        /// Adapter without a driver.
        adapter: AdapterId,
    },
    /// An adapter has a driver again.
    DriverBound {
        /// Adapter with the driver.
        adapter: AdapterId,
    },
    /// The VM of a NIC is being migrated to another host, where the VF is not available.
    MigrationBegan {
        /// NIC of the VM.
        nic: PortId,
    },
    /// The migration of a NIC's VM has ended: it arrived here or stays.
    MigrationEnded {
        /// NIC of the VM.
        nic: PortId,
    },
    /// The guest's driver uses the VF assigned to its NIC.
    VfPathReady {
        /// NIC with the VF.
        nic: PortId,
        /// VF that was assigned.
        vf: VfId,
    },
    /// Hot-plugging a VF failed, or the guest can no longer use it.
    VfPathFailed {
        /// NIC with the VF.
        nic: PortId,
        /// VF that was assigned.
        vf: VfId,
    },
    /// A VF taken from a NIC is free.
    VfReleased {
        /// VF that was released.
        vf: VfId,
    },
}
