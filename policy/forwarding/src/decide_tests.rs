use suimon_frame::{BATCH_FRAMES_MAX, Frame, MacAddr};
use suimon_quantity::{PortId, SwitchId, Time};

use super::*;
use crate::{ForwardingPortSpec, PortRole, SwitchSpec};

const SWITCH: SwitchId = SwitchId(3);
const NOW: Time = Time::from_ns(1_000_000_000);

fn mac(n: u32) -> [u8; 6] {
    let [a, b, c, d] = n.to_be_bytes();
    [0x02, 0, a, b, c, d]
}

fn frame(destination: [u8; 6], source: [u8; 6], tag: Option<VlanTag>) -> Frame {
    let mut frame = Frame::new(0);
    frame.set_bytes(&[&destination[..], &source, &[0x88, 0xb5], &[0; 46]].concat());
    frame.meta.tag = tag;
    frame
}

fn decide(forwarder: &mut Forwarder, tables: &Tables, frames: &mut [Frame]) -> Vec<Verdict> {
    let mut verdicts = [Verdict::default(); BATCH_FRAMES_MAX];
    let ingress = tables.slot(PortId(9)).unwrap();
    forwarder.decide(tables, NOW, ingress, frames, &mut verdicts);
    verdicts[..frames.len()].to_vec()
}

/// The addresses of a batch are loaded ahead if many are learned. Addresses learned within the
/// batch, and frames without an address to load, are handled correctly.
#[test]
fn a_batch_is_decided_alike_whether_few_or_many_addresses_are_learned() {
    let uplink = |id| ForwardingPortSpec {
        learned_addresses_max: u32::MAX,
        ..ForwardingPortSpec::new(PortId(id), SWITCH, PortRole::Uplink)
    };
    let tables = Tables::build(&[SwitchSpec::new(SWITCH)], &[uplink(5), uplink(9)]).unwrap();
    let tag = Some(VlanTag::from_tci(7));
    let batch = || {
        let mut frames = vec![Frame::new(0)];
        frames.extend((0..10).flat_map(|n| {
            [
                frame(mac(n), mac(1_000_000 + n), None),
                // The destination is the source of an earlier frame in this batch.
                frame(mac(1_000_000 + n), mac(n + 20), None),
                frame(MacAddr::BROADCAST.octets(), mac(2_000_000), tag),
            ]
        }));
        frames.push(frame(mac(3), mac(3_000_000), tag));
        frames
    };
    let verdicts = [10, TOUCH_ADDRESSES_MIN as u32 * 4].map(|learned| {
        let mut forwarder = Forwarder::new(1 << 16);
        let ingress = tables.slot(PortId(5)).unwrap();
        for n in 0..learned {
            let mut hello = [frame(MacAddr::BROADCAST.octets(), mac(n), None)];
            let mut verdicts = [Verdict::default(); BATCH_FRAMES_MAX];
            forwarder.decide(&tables, NOW, ingress, &mut hello, &mut verdicts);
        }
        assert_eq!(forwarder.len(), learned as usize);
        decide(&mut forwarder, &tables, &mut batch())
    });
    assert_eq!(verdicts[0].len(), BATCH_FRAMES_MAX);
    assert_eq!(verdicts[0], verdicts[1]);
    let egress = tables.slot(PortId(5)).unwrap();
    assert_eq!(verdicts[0][0], Verdict::Drop(DropReason::Malformed));
    assert_eq!(verdicts[0][1], Verdict::Unicast { egress });
    assert_eq!(verdicts[0][2], Verdict::Drop(DropReason::SameEgress));
}

/// With a virtual function assigned, the guest is reached by the uplink, and the port still has the
/// address.
#[test]
fn an_address_reached_by_the_uplink_is_forwarded_to_the_uplink() {
    let port = |id, role| ForwardingPortSpec::new(PortId(id), SWITCH, role);
    let nic = |id: u32, reached_by| ForwardingPortSpec {
        mac: Some(MacAddr::new(mac(id))),
        reached_by_uplink: reached_by,
        ..port(id, PortRole::Nic)
    };
    let mut forwarder = Forwarder::new(16);
    let mut decide_for = |reached_by: Option<PortId>, from: u32, source: u32, to: u32| {
        let ports = [nic(1, reached_by), nic(2, None), port(9, PortRole::Uplink)];
        let tables = Tables::build(&[SwitchSpec::new(SWITCH)], &ports).unwrap();
        let mut frames = [frame(mac(to), mac(source), None)];
        let mut verdicts = [Verdict::default(); BATCH_FRAMES_MAX];
        let ingress = tables.slot(PortId(from)).unwrap();
        forwarder.decide(&tables, NOW, ingress, &mut frames, &mut verdicts);
        match &verdicts[0] {
            Verdict::Unicast { egress } => Ok(tables.port_id(*egress).unwrap().0),
            Verdict::Drop(reason) => Err(*reason),
            Verdict::Flood { .. } => panic!("flooded"),
        }
    };
    let vf = Some(PortId(9));
    assert_eq!(decide_for(None, 2, 2, 1), Ok(1));
    assert_eq!(decide_for(vf, 2, 2, 1), Ok(9));
    // The frames come from the function by way of the uplink, and from the paravirtual path that
    // the guest still uses.
    assert_eq!(decide_for(vf, 9, 1, 2), Ok(2));
    assert_eq!(decide_for(vf, 1, 1, 2), Ok(2));
    assert_eq!(decide_for(None, 9, 1, 2), Err(DropReason::SpoofedSource));
    // No other port may use the address.
    assert_eq!(decide_for(vf, 2, 1, 9), Err(DropReason::SpoofedSource));
    // A frame from the uplink to the address stays on the uplink's side.
    assert_eq!(decide_for(vf, 9, 77, 1), Err(DropReason::SameEgress));
    let invalid = [nic(1, Some(PortId(2))), nic(2, None)];
    assert!(Tables::build(&[SwitchSpec::new(SWITCH)], &invalid).is_err());
}
