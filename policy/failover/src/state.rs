//! What is known of NICs, VFs and adapters.

use suimon_quantity::{PortId, Time};

use crate::{AdapterId, VfId};

/// The path that a NIC's frames take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Through the switch.
    Synthetic,
    /// Through this VF.
    Vf(VfId),
}

/// Where a NIC is between its two paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has no VF.
    Synthetic,
    /// A VF is being plugged in; given up at this time.
    Offered { vf: VfId, until: Time },
    /// Its frames take a VF.
    OnVf { vf: VfId },
    /// A VF is being unplugged.
    Leaving { vf: VfId },
}

#[derive(Clone, Debug)]
pub(crate) struct Nic {
    pub(crate) iov_weight: u8,
    pub(crate) adapters: Vec<AdapterId>,
    pub(crate) is_migrating: bool,
    /// It gets no VF before this time.
    pub(crate) held_until: Time,
    pub(crate) stage: Stage,
    /// It was told that no VF is free.
    pub(crate) is_told: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Vf {
    pub(crate) is_there: bool,
    /// Nobody gets it before this time.
    pub(crate) held_until: Time,
    /// Who has it, or has not let go of it yet.
    pub(crate) owner: Option<PortId>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Adapter {
    pub(crate) is_resetting: bool,
    pub(crate) is_unbound: bool,
}

impl Adapter {
    pub(crate) const fn works(self) -> bool {
        !self.is_resetting && !self.is_unbound
    }
}

impl Nic {
    /// A NIC that wants nothing yet.
    pub(crate) const fn new() -> Self {
        Self {
            iov_weight: 0,
            adapters: Vec::new(),
            is_migrating: false,
            held_until: Time::ZERO,
            stage: Stage::Synthetic,
            is_told: false,
        }
    }

    /// The VF that it was given and has not been told to leave.
    pub(crate) const fn given(&self) -> Option<VfId> {
        match self.stage {
            Stage::Offered { vf, .. } | Stage::OnVf { vf } => Some(vf),
            Stage::Synthetic | Stage::Leaving { .. } => None,
        }
    }

    /// Whether it is to have a VF and has none.
    pub(crate) fn wants(&self) -> bool {
        self.iov_weight > 0 && !self.is_migrating && self.stage == Stage::Synthetic
    }

    pub(crate) const fn path(&self) -> Path {
        match self.stage {
            Stage::OnVf { vf } => Path::Vf(vf),
            Stage::Synthetic | Stage::Offered { .. } | Stage::Leaving { .. } => Path::Synthetic,
        }
    }
}
