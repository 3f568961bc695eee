//! The offloads of a NIC, each with its reason.

use suimon_contract::{OffloadConfig, OffloadStatus};
use suimon_frame::Offloads;
use suimon_offload::{Capability, Finding, Reason, Side, effective};
use suimon_ports::DeviceStatus;

use crate::wanted::offload_switches;

/// All offloads of a NIC, those of what the guest sends first.
pub(crate) fn offloads(device: &DeviceStatus, config: &OffloadConfig) -> Vec<OffloadStatus> {
    let switches = offload_switches(config);
    let sides = [("tx", Side::Ingress, device.ingress), ("rx", Side::Egress, device.egress)];
    let mut all = Vec::new();
    for (prefix, side, supported) in sides {
        let findings = effective(supported, &switches, side).findings;
        all.extend(findings.iter().map(|finding| status(prefix, finding, supported, device)));
    }
    all
}

fn status(
    prefix: &str,
    finding: &Finding,
    supported: Offloads,
    device: &DeviceStatus,
) -> OffloadStatus {
    let reason = match finding.reason {
        Reason::NotNegotiated if !device.link_up && device.features.is_none() => {
            "nothing is connected".to_owned()
        }
        reason => reason.to_string(),
    };
    OffloadStatus {
        name: name(prefix, finding.capability),
        supported: is_supported(finding.capability, supported),
        effective: finding.is_on(),
        reason,
    }
}

/// Seen from the guest: `tx_checksum`, `rx_tcp4_segmentation`, …
fn name(prefix: &str, capability: Capability) -> String {
    let name = match capability {
        Capability::Checksum => "checksum",
        Capability::IpChecksum => "ip_checksum",
        Capability::Tcp4Segmentation => "tcp4_segmentation",
        Capability::Tcp6Segmentation => "tcp6_segmentation",
        Capability::TcpEcnSegmentation => "tcp_ecn_segmentation",
        Capability::UdpSegmentation => "udp_segmentation",
        Capability::ReceiveCoalescing => return "receive_coalescing".to_owned(),
    };
    format!("{prefix}_{name}")
}

fn is_supported(capability: Capability, supported: Offloads) -> bool {
    match capability {
        Capability::Checksum => supported.checksum,
        Capability::IpChecksum => false,
        Capability::Tcp4Segmentation => supported.tcp4_segmentation,
        Capability::Tcp6Segmentation => supported.tcp6_segmentation,
        Capability::TcpEcnSegmentation => supported.tcp_ecn_segmentation,
        Capability::UdpSegmentation => supported.udp_segmentation,
        Capability::ReceiveCoalescing => supported.tcp4_segmentation || supported.tcp6_segmentation,
    }
}
