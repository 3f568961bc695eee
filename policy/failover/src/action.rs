//! Actions of the failover state machine.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_quantity::PortId;

use crate::VfId;

/// Action that the caller of [`Failover::poll_action`](crate::Failover::poll_action) must carry
/// out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum FailoverAction {
    /// Hot-plug a VF into the VM of a NIC.
    #[serde(rename = "give_vf")]
    PlugVf {
        /// NIC that gets the VF.
        nic: PortId,
        /// VF to hot-plug into the VM.
        vf: VfId,
        /// Cause of the assignment.
        #[serde(rename = "why")]
        reason: FailoverReason,
    },
    /// Switch the data path of the NIC to its VF.
    UseVf {
        /// NIC whose data path is switched.
        nic: PortId,
        /// VF that the NIC has.
        vf: VfId,
        /// Cause of the switch.
        #[serde(rename = "why")]
        reason: FailoverReason,
    },
    /// Switch the data path of the NIC to the paravirtual path.
    #[serde(rename = "use_synthetic")]
    UseParavirtual {
        /// NIC whose data path is switched.
        nic: PortId,
        /// Cause of the switch.
        #[serde(rename = "why")]
        reason: FailoverReason,
    },
    /// Hot-unplug a VF, then report
    /// [`FailoverEvent::VfReleased`](crate::FailoverEvent::VfReleased).
    #[serde(rename = "take_vf")]
    UnplugVf {
        /// NIC that loses the VF.
        nic: PortId,
        /// VF to hot-unplug from the VM.
        vf: VfId,
        /// Cause of the unplugging.
        #[serde(rename = "why")]
        reason: FailoverReason,
    },
    /// Report to the operator that a NIC with an `iov_weight` above 0 remains on the paravirtual
    /// path.
    #[serde(rename = "stay_synthetic")]
    ReportNoVf {
        /// NIC that waits for a VF.
        nic: PortId,
        /// Cause of the missing VF.
        #[serde(rename = "why")]
        reason: FailoverReason,
    },
}

/// Cause of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailoverReason {
    /// A VF is free, and no waiting NIC has a higher weight.
    #[serde(rename = "turn")]
    NextByWeight,
    /// The guest's driver uses the VF.
    #[serde(rename = "ready")]
    GuestDriverReady,
    /// The VF no longer exists.
    VfLost,
    /// The adapter is being reset.
    #[serde(rename = "reset")]
    AdapterReset,
    /// The adapter has no driver.
    DriverUnbound,
    /// The VM is being migrated.
    Migration,
    /// Hot-plugging failed, or the guest cannot use the VF.
    PathFailed,
    /// The guest did not use the VF in time.
    NotReadyInTime,
    /// The `iov_weight` of the NIC is 0.
    WeightZero,
    /// The VF belongs to an adapter that does not connect the NIC's switch.
    #[serde(rename = "other_adapters")]
    AdapterOfOtherSwitch,
    /// The NIC was removed from its switch or VM, or its guest does not support failover any more.
    NicRemoved,
    /// All VFs of the NIC's adapters are assigned, or held down after a failure.
    NoVfFree,
}

impl FailoverReason {
    /// Returns true if the reason is a failure of the VF, its adapter or the guest's driver, after
    /// which NIC and VF are held down.
    pub const fn is_failure(self) -> bool {
        match self {
            Self::VfLost
            | Self::AdapterReset
            | Self::DriverUnbound
            | Self::PathFailed
            | Self::NotReadyInTime => true,
            Self::NextByWeight
            | Self::GuestDriverReady
            | Self::Migration
            | Self::WeightZero
            | Self::AdapterOfOtherSwitch
            | Self::NicRemoved
            | Self::NoVfFree => false,
        }
    }
}

impl fmt::Display for FailoverReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NextByWeight => "the NIC is next by its iov_weight",
            Self::GuestDriverReady => "the VF is attached to the guest",
            Self::VfLost => "the VF does not exist any more",
            Self::AdapterReset => "the adapter is being reset",
            Self::DriverUnbound => "the adapter has no driver",
            Self::Migration => "the VM is migrating",
            Self::PathFailed => "the VF could not be attached, or the guest cannot use it",
            Self::NotReadyInTime => "the guest did not initialize the VF in time",
            Self::WeightZero => "the NIC's iov_weight is 0",
            Self::AdapterOfOtherSwitch => "the NIC's switch does not use the VF's adapter",
            Self::NicRemoved => {
                "the NIC was deleted, its VM does not have it, or the guest does not support failover"
            }
            Self::NoVfFree => "no VF for this NIC is free",
        })
    }
}

impl FailoverAction {
    /// Returns the NIC that the action concerns.
    pub const fn nic(&self) -> PortId {
        match self {
            Self::PlugVf { nic, .. }
            | Self::UseVf { nic, .. }
            | Self::UseParavirtual { nic, .. }
            | Self::UnplugVf { nic, .. }
            | Self::ReportNoVf { nic, .. } => *nic,
        }
    }
}

/// Formats the action as the text of an event about the NIC.
impl fmt::Display for FailoverAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PlugVf { vf, reason, .. } => write!(f, "{vf} is attached: {reason}"),
            Self::UseVf { vf, reason, .. } => write!(f, "traffic uses {vf}: {reason}"),
            Self::UseParavirtual { reason, .. } => write!(f, "traffic uses the switch: {reason}"),
            Self::UnplugVf { vf, reason, .. } => write!(f, "{vf} is detached: {reason}"),
            Self::ReportNoVf { reason, .. } => {
                write!(f, "traffic stays on the switch: {reason}")
            }
        }
    }
}
