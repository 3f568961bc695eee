//! What is to be done.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_quantity::PortId;

use crate::VfId;

/// An imperative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Plug a VF into the VM of a NIC.
    GiveVf {
        /// Which NIC.
        nic: PortId,
        /// What it gets.
        vf: VfId,
        /// Why.
        why: Why,
    },
    /// Have the NIC's frames take its VF.
    UseVf {
        /// Which NIC.
        nic: PortId,
        /// What it has.
        vf: VfId,
        /// Why.
        why: Why,
    },
    /// Have the NIC's frames take the synthetic path.
    UseSynthetic {
        /// Which NIC.
        nic: PortId,
        /// Why.
        why: Why,
    },
    /// Unplug a VF, and tell when it is free.
    TakeVf {
        /// Which NIC.
        nic: PortId,
        /// What it had.
        vf: VfId,
        /// Why.
        why: Why,
    },
    /// Tell that a NIC that is to have a VF stays on the synthetic path.
    StaySynthetic {
        /// Which NIC.
        nic: PortId,
        /// Why.
        why: Why,
    },
}

/// Why something is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It is its turn, by its weight.
    Turn,
    /// The guest has the VF.
    Ready,
    /// The VF is no more.
    VfLost,
    /// The adapter resets itself.
    Reset,
    /// The adapter has no driver.
    DriverUnbound,
    /// Its VM is being moved.
    Migration,
    /// The guest cannot use the VF, or it could not be plugged in.
    PathFailed,
    /// The guest did not take the VF in time.
    NotReadyInTime,
    /// Its `iov_weight` is 0 now.
    WeightZero,
    /// The VF is of an adapter that it cannot be reached by any more.
    OtherAdapters,
    /// The NIC is no more.
    NicRemoved,
    /// All VFs that it could have are given away or held down.
    NoVfFree,
}

impl Why {
    /// Whether it is a failure, after which what failed is left alone for a while.
    pub const fn is_failure(self) -> bool {
        match self {
            Self::VfLost
            | Self::Reset
            | Self::DriverUnbound
            | Self::PathFailed
            | Self::NotReadyInTime => true,
            Self::Turn
            | Self::Ready
            | Self::Migration
            | Self::WeightZero
            | Self::OtherAdapters
            | Self::NicRemoved
            | Self::NoVfFree => false,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Turn => "it is the NIC's turn by its iov_weight",
            Self::Ready => "the guest has the VF",
            Self::VfLost => "the VF is gone",
            Self::Reset => "the adapter resets itself",
            Self::DriverUnbound => "the adapter has no driver",
            Self::Migration => "the VM is being moved",
            Self::PathFailed => "the VF could not be plugged in, or the guest cannot use it",
            Self::NotReadyInTime => "the guest did not take the VF in time",
            Self::WeightZero => "the NIC's iov_weight is 0",
            Self::OtherAdapters => "the NIC's switch does not use the VF's adapter",
            Self::NicRemoved => "the NIC is gone",
            Self::NoVfFree => "no VF that it could have is free",
        })
    }
}

impl Action {
    /// The NIC that it is about.
    pub const fn nic(&self) -> PortId {
        match self {
            Self::GiveVf { nic, .. }
            | Self::UseVf { nic, .. }
            | Self::UseSynthetic { nic, .. }
            | Self::TakeVf { nic, .. }
            | Self::StaySynthetic { nic, .. } => *nic,
        }
    }
}

/// As an event tells it, of the NIC that it is about.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GiveVf { vf, why, .. } => write!(f, "{vf} is plugged in: {why}"),
            Self::UseVf { vf, why, .. } => write!(f, "frames take {vf}: {why}"),
            Self::UseSynthetic { why, .. } => write!(f, "frames take the switch: {why}"),
            Self::TakeVf { vf, why, .. } => write!(f, "{vf} is unplugged: {why}"),
            Self::StaySynthetic { why, .. } => write!(f, "frames stay with the switch: {why}"),
        }
    }
}
