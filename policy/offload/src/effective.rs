//! What a port uses of what it could.

use serde::{Deserialize, Serialize};
use suimon_frame::Offloads;

use crate::{Capability, Finding, OffloadSwitches, Reason, Switch};

/// Which side of a port is meant, seen from the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Frames come in: the guest sends to us, or the uplink's device received.
    Ingress,
    /// Frames go out: to the guest, or by the uplink's device.
    Egress,
}

/// Whose switches are meant. They are named as who uses the port sees it: the
/// guest uses its NIC, and we use the uplink's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// A guest's NIC: its `tx` comes in here.
    Nic,
    /// An uplink: its `tx` goes out here.
    Uplink,
}

impl PortKind {
    /// Whether the port's user receives on this side.
    pub const fn receives(self, side: Side) -> bool {
        matches!((self, side), (Self::Nic, Side::Egress) | (Self::Uplink, Side::Ingress))
    }

    /// The switch that governs a capability on this side.
    pub const fn switch(self, side: Side, capability: Capability) -> Switch {
        match (capability, self.receives(side)) {
            (Capability::Checksum, false) => Switch::TxChecksum,
            (Capability::Checksum, true) => Switch::RxChecksum,
            (Capability::IpChecksum, false) => Switch::TxIpChecksum,
            (Capability::IpChecksum, true) => Switch::RxIpChecksum,
            (Capability::ReceiveCoalescing, _) => Switch::ReceiveCoalescing,
            _ => Switch::Segmentation,
        }
    }
}

/// What one side of a port uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effective {
    /// The forms of frame that may pass this side.
    pub offloads: Offloads,
    /// The forms of frame that may pass this side if they came in by an uplink.
    /// No wire carries a large frame, so a large one from there has been joined
    /// on reception; without receive coalescing, of the uplink or of the guest's
    /// NIC, the guest is given the segments.
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
pub fn effective(
    supported: Offloads,
    switches: &OffloadSwitches,
    kind: PortKind,
    side: Side,
) -> Effective {
    let of =
        |capability, is_supported| judge(is_supported, switches, kind.switch(side, capability));
    let checksum = of(Capability::Checksum, supported.checksum);
    let large = |capability, is_supported| {
        of(capability, is_supported).or_needs(checksum, Capability::Checksum)
    };
    let tcp4 = large(Capability::Tcp4Segmentation, supported.tcp4_segmentation);
    let tcp6 = large(Capability::Tcp6Segmentation, supported.tcp6_segmentation);
    // ECN is a form of the other two, nothing of its own.
    let any_tcp = if tcp4 == Reason::On { tcp4 } else { tcp6 };
    let ecn = large(Capability::TcpEcnSegmentation, supported.tcp_ecn_segmentation)
        .or_needs(any_tcp, Capability::Tcp4Segmentation);
    let udp = large(Capability::UdpSegmentation, supported.udp_segmentation);

    let offloads = Offloads {
        checksum: checksum == Reason::On,
        tcp4_segmentation: tcp4 == Reason::On,
        tcp6_segmentation: tcp6 == Reason::On,
        tcp_ecn_segmentation: ecn == Reason::On,
        udp_segmentation: udp == Reason::On,
    };
    let ip_checksum = ip_checksum(switches, kind.switch(side, Capability::IpChecksum));
    let mut findings = vec![
        Finding { capability: Capability::Checksum, reason: checksum },
        Finding { capability: Capability::IpChecksum, reason: ip_checksum },
        Finding { capability: Capability::Tcp4Segmentation, reason: tcp4 },
        Finding { capability: Capability::Tcp6Segmentation, reason: tcp6 },
        Finding { capability: Capability::TcpEcnSegmentation, reason: ecn },
        Finding { capability: Capability::UdpSegmentation, reason: udp },
    ];
    let mut offloads_from_uplink = offloads;
    if kind.receives(side) {
        let coalescing =
            of(Capability::ReceiveCoalescing, true).or_needs(any_tcp, Capability::Tcp4Segmentation);
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
    /// `reason`. Where `other` is switched off, the other side was not asked for this
    /// either, and does not lack it.
    fn or_needs(self, reason: Self, other: Capability) -> Self {
        match (self, reason) {
            (Self::On, Self::On) => self,
            (Self::On, _) | (Self::NotNegotiated, Self::SwitchedOff { .. }) => {
                Self::Needs { other }
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests;
