//! Switch between VMs and the external network: decisions of `policy/forwarding`, called as by
//! `plane/switch`.
//!
//! Each VM has its configured MAC address; no external addresses are known.

use anyhow::Result;
use suimon_forwarding::{Forwarder, ForwardingPortSpec, PortRole, SwitchSpec, Tables, Verdict};
use suimon_frame::{BATCH_FRAMES_MAX, Frame, MacAddr};
use suimon_quantity::{PortId, SwitchId, Time};

use crate::host::spec::SwitchKind;

const SWITCH: SwitchId = SwitchId(1);
const UPLINK: PortId = PortId(1 << 20);

/// Destinations of a forwarded frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Destinations {
    /// The only receiving VM, if there is exactly one.
    pub(crate) only_receiver: Option<u32>,
    /// Number of VMs that received the frame.
    pub(crate) receiver_count: u32,
    /// True if the frame left by the uplink.
    pub(crate) has_left_host: bool,
}

pub(crate) struct Switch {
    tables: Tables,
    forwarder: Forwarder,
}

impl Switch {
    /// Returns a switch with its VMs.
    ///
    /// # Errors
    /// The policy rejects the configuration.
    pub(crate) fn new(kind: SwitchKind, vms: u32) -> Result<Self> {
        let nic = |vm| ForwardingPortSpec {
            mac: Some(address(vm)),
            ..ForwardingPortSpec::new(PortId(vm), SWITCH, PortRole::Nic)
        };
        let mut ports: Vec<ForwardingPortSpec> = (0..vms).map(nic).collect();
        if kind == SwitchKind::External {
            ports.push(ForwardingPortSpec::new(UPLINK, SWITCH, PortRole::Uplink));
        }
        let tables = Tables::build(&[SwitchSpec::new(SWITCH)], &ports)?;
        Ok(Self { tables, forwarder: Forwarder::new(1024) })
    }

    /// Forwards a frame of the VM `from` to the VM `to`; with `None`, a broadcast.
    pub(crate) fn send(&mut self, now: Time, from: u32, to: Option<u32>) -> Destinations {
        let mut destinations = Destinations::default();
        let Some(ingress) = self.tables.slot(PortId(from)) else { return destinations };
        let destination = to.map_or(MacAddr::BROADCAST, address);
        let mut frame = Frame::new(0);
        frame.set_bytes(
            &[&destination.octets()[..], &address(from).octets(), &[0x08, 0x00], &[0; 46]].concat(),
        );
        let mut verdicts = [Verdict::default(); BATCH_FRAMES_MAX];
        let frames = std::slice::from_mut(&mut frame);
        self.forwarder.decide(&self.tables, now, ingress, frames, &mut verdicts);
        match verdicts.first() {
            Some(Verdict::Unicast { egress }) => {
                let port = self.tables.port_id(*egress);
                destinations.has_left_host = port == Some(UPLINK);
                destinations.only_receiver = port.filter(|port| *port != UPLINK).map(|port| port.0);
            }
            Some(Verdict::Flood { vlan, kind }) => {
                for member in self.tables.flood_members(ingress, *vlan, *kind) {
                    match self.tables.port_id(member.slot) {
                        Some(UPLINK) => destinations.has_left_host = true,
                        _ => destinations.receiver_count += 1,
                    }
                }
            }
            _ => {}
        }
        destinations
    }
}

fn address(vm: u32) -> MacAddr {
    let [_, _, c, d] = vm.to_be_bytes();
    MacAddr::new([0x52, 0x54, 0, 0x12, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_broadcasts_leave_and_on_a_private_switch_not_even_they() {
        let mut external = Switch::new(SwitchKind::External, 4).unwrap();
        let to_one =
            Destinations { only_receiver: Some(3), receiver_count: 0, has_left_host: false };
        assert_eq!(external.send(Time::ZERO, 0, Some(3)), to_one);
        assert_eq!(
            external.send(Time::ZERO, 0, None),
            Destinations { only_receiver: None, receiver_count: 3, has_left_host: true }
        );
        let mut private = Switch::new(SwitchKind::Private, 4).unwrap();
        assert_eq!(
            private.send(Time::ZERO, 0, None),
            Destinations { only_receiver: None, receiver_count: 3, has_left_host: false }
        );
    }
}
