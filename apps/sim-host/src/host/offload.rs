//! Checksum and segmentation offloads of a NIC: decisions of `policy/offload`, called as by
//! `plane/node`.

use suimon_frame::Offloads;
use suimon_offload::{
    DeviceFeatures, FeatureState, FrameDirection, OffloadCapability, OffloadToggles, Performer,
    PortKind, effective_offloads, performer_at_device,
};

use crate::host::spec::NicSpec;

/// Offloads performed by a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NicOffloads {
    pub(crate) checksum: bool,
    pub(crate) segmentation: bool,
    pub(crate) receive_checksum: bool,
}

/// Returns the offloads that a NIC performs with these settings. The kernel accepts every form of
/// frame.
pub(crate) fn offloads_by_nic(nic: &NicSpec, switches: &OffloadToggles) -> NicOffloads {
    let mut device = DeviceFeatures::default();
    for feature in &nic.features {
        let is_set = true;
        *device.state_mut(*feature) = FeatureState {
            can_change: is_set,
            is_wanted: is_set,
            is_active: is_set,
            is_fixed: false,
        };
    }
    let is_nic = |side, capability| {
        let findings =
            effective_offloads(Offloads::TCP, switches, PortKind::Uplink, side).capability_statuses;
        let finding = findings.iter().find(|finding| finding.capability == capability);
        finding.is_some_and(|finding| {
            performer_at_device(side, finding, &device).performer == Performer::Nic
        })
    };
    NicOffloads {
        checksum: is_nic(FrameDirection::Egress, OffloadCapability::Checksum),
        segmentation: is_nic(FrameDirection::Egress, OffloadCapability::Tcp4Segmentation),
        receive_checksum: is_nic(FrameDirection::Ingress, OffloadCapability::Checksum),
    }
}
