//! What happened.

use serde::{Deserialize, Serialize};
use suimon_quantity::PortId;

use crate::{AdapterId, VfId};

/// A past fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A NIC exists, or is now so.
    NicSet {
        /// Which.
        nic: PortId,
        /// How much it is to have a VF, 0 (never) to 100.
        iov_weight: u8,
        /// The adapters that it can be reached by: those of its switch.
        adapters: Vec<AdapterId>,
    },
    /// A NIC exists whose guest has had a VF since before this was asked: its owner was started
    /// anew.
    VfHeld {
        /// Which.
        nic: PortId,
        /// As in [`Event::NicSet`].
        iov_weight: u8,
        /// As in [`Event::NicSet`].
        adapters: Vec<AdapterId>,
        /// What it has.
        vf: VfId,
    },
    /// A NIC is no more.
    NicRemoved {
        /// Which.
        nic: PortId,
    },
    /// A VF exists and could be given away.
    VfFound {
        /// Which.
        vf: VfId,
    },
    /// A VF is no more.
    VfLost {
        /// Which.
        vf: VfId,
    },
    /// An adapter began to reset itself: its VFs carry nothing.
    ResetBegan {
        /// Which.
        adapter: AdapterId,
    },
    /// An adapter has reset itself.
    ResetEnded {
        /// Which.
        adapter: AdapterId,
    },
    /// An adapter has no driver: its VFs carry nothing.
    DriverUnbound {
        /// Which.
        adapter: AdapterId,
    },
    /// An adapter has its driver again.
    DriverBound {
        /// Which.
        adapter: AdapterId,
    },
    /// The VM of a NIC is being moved to another host, where a VF of this one is not.
    MigrationBegan {
        /// Which NIC.
        nic: PortId,
    },
    /// The VM of a NIC is not being moved any more: it came, or stays.
    MigrationEnded {
        /// Which NIC.
        nic: PortId,
    },
    /// The guest has a VF that its NIC was given, and could use it.
    VfPathReady {
        /// Which NIC.
        nic: PortId,
        /// What it was given.
        vf: VfId,
    },
    /// A VF could not be plugged in, or the guest cannot use it any more.
    VfPathFailed {
        /// Which NIC.
        nic: PortId,
        /// What it was given.
        vf: VfId,
    },
    /// A VF that was taken from a NIC is free.
    VfReleased {
        /// Which.
        vf: VfId,
    },
}
