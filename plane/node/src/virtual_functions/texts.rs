//! Events of NICs with VFs.

use suimon_contract::{EventKind, Name};

use super::VfAddress;
use crate::events::EventDraft;

fn nic_draft(kind: EventKind, nic: &Name, text: String) -> EventDraft {
    EventDraft::new(kind, format!("nic/{nic}"), text)
}

fn with_vf(draft: EventDraft, vf: &VfAddress) -> EventDraft {
    draft.with("adapter", vf.adapter).with("vf", vf.index).with("address", vf.pci_address)
}

pub(super) fn nic_on_vf_event(nic: &Name, vf: &VfAddress) -> EventDraft {
    with_vf(nic_draft(EventKind::NicOnVf, nic, format!("Traffic of the NIC uses {vf}.")), vf)
}

pub(super) fn nic_on_paravirtual_path_event(
    nic: &Name,
    vf: &VfAddress,
    reason: &str,
) -> EventDraft {
    let text = format!("Traffic of the NIC uses the switch, {vf} was released: {reason}.");
    with_vf(nic_draft(EventKind::NicOnSynthetic, nic, text), vf).with("reason", reason)
}

pub(super) fn nic_lost_vf_event(nic: &Name, vf: &VfAddress, reason: &str) -> EventDraft {
    let text = format!(
        "Traffic of the NIC uses the switch instead of {vf}: {reason}. Check the adapter and the \
         kernel log."
    );
    with_vf(nic_draft(EventKind::NicLostVf, nic, text), vf).with("reason", reason)
}

pub(super) fn nic_without_vf_event(nic: &Name, reason: &str) -> EventDraft {
    let text = format!(
        "Traffic of the NIC uses the switch, because no VF can be assigned: {reason}. Set \
         `iov_weight` of this or of another NIC to 0, or add VFs with `suimon vf enable`, which \
         requires that no VF of the adapter is in use."
    );
    nic_draft(EventKind::NicWithoutVf, nic, text).with("reason", reason)
}
