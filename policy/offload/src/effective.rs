//! What a port uses of what it could.

use serde::{Deserialize, Serialize};
use suimon_frame::Offloads;

use crate::{Capability, Finding, OffloadSwitches, Reason, Switch};

/// Which side of a port is meant, seen from the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The guest sends to us.
    Ingress,
    /// We send to the guest.
    Egress,
}

/// What one side of a port uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effective {
    /// The forms of frame that may pass this side.
    pub offloads: Offloads,
    /// The forms of frame that may pass this side if they came in by an uplink.
    /// No wire carries a large frame, so a large one from there has been joined
    /// on reception; without receive coalescing the guest is given the segments.
    pub offloads_from_uplink: Offloads,
    /// A reason for each capability of this side, in the order of [`Capability`].
    pub findings: Vec<Finding>,
}

impl Effective {
    /// Why `capability` is in use or not; `None` if this side has no such thing.
    pub fn reason(&self, capability: Capability) -> Option<Reason> {
        self.findings
            .iter()
            .find(|finding| finding.capability == capability)
            .map(|finding| finding.reason)
    }
}

/// What one side of a port uses: what is supported by the other side, switched
/// on by the operator, and possible together.
pub fn effective(supported: Offloads, switches: &OffloadSwitches, side: Side) -> Effective {
    let (checksum_switch, ip_switch) = match side {
        Side::Ingress => (Switch::TxChecksum, Switch::TxIpChecksum),
        Side::Egress => (Switch::RxChecksum, Switch::RxIpChecksum),
    };
    let checksum = judge(supported.checksum, switches, checksum_switch);
    let large = |is_supported| {
        judge(is_supported, switches, Switch::Segmentation).or_needs(checksum, Capability::Checksum)
    };
    let tcp4 = large(supported.tcp4_segmentation);
    let tcp6 = large(supported.tcp6_segmentation);
    // ECN is a form of the other two, nothing of its own.
    let any_tcp = if tcp4 == Reason::On { tcp4 } else { tcp6 };
    let ecn = large(supported.tcp_ecn_segmentation).or_needs(any_tcp, Capability::Tcp4Segmentation);
    let udp = large(supported.udp_segmentation);

    let offloads = Offloads {
        checksum: checksum == Reason::On,
        tcp4_segmentation: tcp4 == Reason::On,
        tcp6_segmentation: tcp6 == Reason::On,
        tcp_ecn_segmentation: ecn == Reason::On,
        udp_segmentation: udp == Reason::On,
    };
    let mut findings = vec![
        Finding { capability: Capability::Checksum, reason: checksum },
        Finding { capability: Capability::IpChecksum, reason: ip_checksum(switches, ip_switch) },
        Finding { capability: Capability::Tcp4Segmentation, reason: tcp4 },
        Finding { capability: Capability::Tcp6Segmentation, reason: tcp6 },
        Finding { capability: Capability::TcpEcnSegmentation, reason: ecn },
        Finding { capability: Capability::UdpSegmentation, reason: udp },
    ];
    let mut offloads_from_uplink = offloads;
    if side == Side::Egress {
        let coalescing = judge(true, switches, Switch::ReceiveCoalescing)
            .or_needs(any_tcp, Capability::Tcp4Segmentation);
        findings.push(Finding { capability: Capability::ReceiveCoalescing, reason: coalescing });
        if coalescing != Reason::On {
            offloads_from_uplink = offloads.without_segmentation();
        }
    }
    Effective { offloads, offloads_from_uplink, findings }
}

/// The operator's word comes first: what is switched off is not missed.
fn judge(is_supported: bool, switches: &OffloadSwitches, switch: Switch) -> Reason {
    match (switches.is_on(switch), is_supported) {
        (false, _) => Reason::SwitchedOff { switch },
        (true, false) => Reason::NotNegotiated,
        (true, true) => Reason::On,
    }
}

fn ip_checksum(switches: &OffloadSwitches, switch: Switch) -> Reason {
    if switches.is_on(switch) { Reason::NotInVirtio } else { Reason::SwitchedOff { switch } }
}

impl Reason {
    /// This reason, unless it is `On` while `other`, which it needs, is not for
    /// `reason`.
    fn or_needs(self, reason: Self, other: Capability) -> Self {
        if self == Self::On && reason != Self::On { Self::Needs { other } } else { self }
    }
}

#[cfg(test)]
mod tests;
