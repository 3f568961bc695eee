//! State of NICs, VFs and adapters.

use suimon_quantity::{PortId, Time};

use crate::{AdapterId, VfId};

/// Path of a NIC's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPath {
    /// Paravirtual path through the switch.
    Paravirtual,
    /// Path through this virtual function, bypassing the switch.
    Vf(VfId),
}

/// Stage of a NIC's change between paravirtual path and VF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The NIC has no VF.
    Paravirtual,
    /// `vf` is being hot-plugged; it is unplugged if the guest does not use it before `until`.
    Plugging { vf: VfId, until: Time },
    /// The NIC's frames use a VF.
    OnVf { vf: VfId },
    /// A VF is being hot-unplugged.
    Unplugging { vf: VfId },
}

#[derive(Clone, Debug)]
pub(crate) struct Nic {
    pub(crate) iov_weight: u8,
    pub(crate) adapters: Vec<AdapterId>,
    pub(crate) is_migrating: bool,
    /// Time before which the NIC gets no VF.
    pub(crate) held_down_until: Time,
    /// VF that last could not be attached to this NIC or that the guest did not use in time; `None`
    /// after a success.
    pub(crate) failed_vf: Option<VfId>,
    pub(crate) stage: Stage,
    /// True if the operator was informed that no VF is free for the NIC.
    pub(crate) is_missing_vf_reported: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Vf {
    pub(crate) exists: bool,
    /// Time before which the VF is not assigned.
    pub(crate) held_down_until: Time,
    /// NIC to which the VF is assigned or from which it is being unplugged.
    pub(crate) owner: Option<PortId>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Adapter {
    pub(crate) is_resetting: bool,
    pub(crate) is_driver_unbound: bool,
}

impl Adapter {
    pub(crate) const fn carries_frames(self) -> bool {
        !self.is_resetting && !self.is_driver_unbound
    }
}

impl Nic {
    /// Creates a NIC with weight 0, without adapters and VF.
    pub(crate) const fn new() -> Self {
        Self {
            iov_weight: 0,
            adapters: Vec::new(),
            is_migrating: false,
            held_down_until: Time::ZERO,
            failed_vf: None,
            stage: Stage::Paravirtual,
            is_missing_vf_reported: false,
        }
    }

    /// Returns the VF that is being hot-plugged or in use, but not one that is being unplugged.
    pub(crate) const fn assigned_vf(&self) -> Option<VfId> {
        match self.stage {
            Stage::Plugging { vf, .. } | Stage::OnVf { vf } => Some(vf),
            Stage::Paravirtual | Stage::Unplugging { .. } => None,
        }
    }

    /// Returns true if the NIC is on the paravirtual path, has a weight above 0, and its VM is not
    /// being migrated.
    pub(crate) fn is_waiting_for_vf(&self) -> bool {
        self.iov_weight > 0 && !self.is_migrating && self.stage == Stage::Paravirtual
    }

    pub(crate) const fn path(&self) -> DataPath {
        match self.stage {
            Stage::OnVf { vf } => DataPath::Vf(vf),
            Stage::Paravirtual | Stage::Plugging { .. } | Stage::Unplugging { .. } => {
                DataPath::Paravirtual
            }
        }
    }
}
