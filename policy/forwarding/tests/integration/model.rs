//! Comparison with a simple reference switch: for any topology, frames and live changes, both
//! deliver the same frames to the same ports with the same tags, and drop for the same reasons.

use crate::reference;
use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use suimon_forwarding::{
    Forwarder, ForwardingPortSpec, PortRole, PortSlot, SwitchSpec, Tables, TablesError, Verdict,
    VlanMode, VlanSet,
};
use suimon_frame::{Checksum, Frame, Gso, GsoKind, MacAddr, VlanId, VlanTag};
use suimon_quantity::{PortId, SwitchId, Time};

use crate::reference::{Delivery, Outcome, Reference};

const SWITCHES: u32 = 3;
const AGEING: Duration = Duration::from_secs(20);

/// Operation on both switches.
#[derive(Clone, Debug)]
enum Op {
    /// Forwards one batch; port and delay are those of its first frame.
    Batch(Vec<Arrival>),
    /// Removes the port, or adds it again.
    Toggle(usize),
    Vlan(usize, VlanMode),
    Mac(usize, Option<MacAddr>, bool),
}

/// Received frame, with its ingress port and the delay before it.
#[derive(Clone, Debug)]
struct Arrival {
    port: usize,
    source: MacAddr,
    destination: MacAddr,
    tag: Option<u16>,
    /// Types of further tags, with VLAN 2, after the tag in the metadata.
    tags: Vec<u16>,
    len: usize,
    segment_bytes: Option<u16>,
    wait_ms: u64,
}

fn mac(last: u8) -> MacAddr {
    MacAddr::new([0x52, 0x54, 0, 0, 0, last])
}

fn any_mac() -> impl Strategy<Value = MacAddr> {
    prop_oneof![
        20 => (1u8..12).prop_map(mac),
        1 => Just(MacAddr::BROADCAST),
        1 => Just(MacAddr::new([1, 0, 0x5e, 0, 0, 1])),
        1 => Just(MacAddr::new([1, 0x80, 0xc2, 0, 0, 0x0e])),
        1 => Just(MacAddr::new([1, 0x80, 0xc2, 0, 0, 0x10])),
        1 => Just(MacAddr::new([0; 6])),
    ]
}

fn any_vlan() -> impl Strategy<Value = Option<VlanId>> {
    select(vec![None, VlanId::new(1), VlanId::new(2), VlanId::new(4094)])
}

fn any_mode() -> impl Strategy<Value = VlanMode> {
    let set = prop::collection::vec(any_vlan(), 0..4).prop_map(|vlans| {
        let mut set: VlanSet = vlans.iter().flatten().copied().collect();
        if vlans.contains(&None) {
            set.insert_untagged();
        }
        set
    });
    prop_oneof![
        3 => any_vlan().prop_map(VlanMode::Access),
        2 => (set, any_vlan()).prop_map(|(allowed, native)| VlanMode::Trunk { allowed, native }),
        1 => Just(VlanMode::Trunk { allowed: VlanSet::all(), native: None }),
    ]
}

fn any_port() -> impl Strategy<Value = ForwardingPortSpec> {
    let mac = prop_oneof![1 => Just(None), 1 => (1u8..12).prop_map(|n| Some(mac(n)))];
    let mtu = select(vec![68u16, 1500, 9000]);
    let bound = select(vec![0u32, 1, 2, 1024, 1024, 1024]);
    let bound_to = prop_oneof![2 => Just(None), 1 => (1u8..12).prop_map(|n| Some(self::mac(n)))];
    let spoofing = (any::<bool>(), bound_to);
    let flags = (spoofing, prop::bool::weighted(0.3), prop::bool::weighted(0.2));
    (0..SWITCHES, any_mode(), mac, mtu, bound, flags).prop_map(
        |(switch, vlan, mac, mtu, learned_max, (spoofing, isolated, is_uplink))| {
            let (spoofing_allowed, bound) = spoofing;
            let role = if is_uplink { PortRole::Uplink } else { PortRole::Nic };
            ForwardingPortSpec {
                vlan,
                mac: if is_uplink { None } else { mac },
                mtu,
                learned_addresses_max: learned_max,
                spoofing_allowed,
                bound_address: if is_uplink { None } else { bound },
                isolated,
                ..ForwardingPortSpec::new(PortId(0), SwitchId(switch * 7), role)
            }
        },
    )
}

fn any_op() -> impl Strategy<Value = Op> {
    let tag = select(vec![None, None, Some(0), Some(1), Some(2), Some(3), Some(4094), Some(4095)]);
    let tag = (tag, 0u16..16).prop_map(|(tag, priority)| tag.map(|vid| priority << 12 | vid));
    let len = select(vec![13usize, 14, 60, 82, 83, 1514, 1515, 9014, 9015, 40_000]);
    let segment = select(vec![None, None, Some(28u16), Some(1446), Some(1447), Some(8946)]);
    let wait = select(vec![0u64, 0, 1, 400, 3_000, 24_000, 90_000]);
    let tag_type = select(vec![0x8100u16, 0x88a8, 0x9100, 0x9200, 0x9300, 0x8101, 0x0806]);
    let inner_tags = prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec(tag_type, 1..4)];
    let arrival = (0usize..12, any_mac(), any_mac(), (tag, inner_tags), len, segment, wait)
        .prop_map(|(port, source, destination, (tag, tags), len, segment_bytes, wait_ms)| {
            Arrival { port, source, destination, tag, tags, len, segment_bytes, wait_ms }
        });
    // Runs of frames of one flow, as in real batches.
    let run = (arrival, 1usize..3).prop_map(|(arrival, count)| vec![arrival; count]);
    let batch = prop::collection::vec(run, 1..5).prop_map(|runs| Op::Batch(runs.concat()));
    prop_oneof![
        20 => batch,
        1 => (0usize..12).prop_map(Op::Toggle),
        1 => (0usize..12, any_mode()).prop_map(|(port, mode)| Op::Vlan(port, mode)),
        1 => (0usize..12, prop::option::of((1u8..12).prop_map(mac)), any::<bool>())
            .prop_map(|(port, mac, free)| Op::Mac(port, mac, free)),
    ]
}

/// The switch under test and the reference switch.
struct Pair {
    switches: Vec<SwitchSpec>,
    ports: Vec<(ForwardingPortSpec, bool)>,
    tables: Tables,
    forwarder: Forwarder,
    reference: Reference,
    now: Time,
    frames: Vec<Frame>,
    original: Frame,
}

impl Pair {
    fn new(specs: Vec<ForwardingPortSpec>) -> Self {
        let switches: Vec<_> =
            (0..SWITCHES).map(|n| SwitchSpec { id: SwitchId(n * 7), ageing: AGEING }).collect();
        // Identifiers are in the opposite order of the ports.
        let id = |n: u32| PortId(100 - 3 * n);
        let ports =
            (0..).zip(specs).map(|(n, spec)| (ForwardingPortSpec { id: id(n), ..spec }, true));
        let mut pair = Self {
            tables: Tables::build(&switches, &[]).unwrap(),
            switches,
            ports: Vec::new(),
            forwarder: Forwarder::new(4096),
            reference: Reference::new(AGEING),
            now: Time::from_ns(5_000_000_000),
            frames: (0..8).map(Frame::new).collect(),
            original: Frame::new(0),
        };
        for port in ports {
            pair.try_change(|ports| ports.push(port));
        }
        pair
    }

    fn handle(&mut self, op: Op) {
        match op {
            Op::Batch(arrivals) => self.arrive(&arrivals),
            Op::Toggle(index) => self.try_change_port(index, |port| port.1 = !port.1),
            Op::Vlan(index, mode) => self.try_change_port(index, |port| port.0.vlan = mode),
            Op::Mac(index, mac, spoofing_allowed) => self.try_change_port(index, |port| {
                port.0.mac = mac;
                port.0.spoofing_allowed = spoofing_allowed;
            }),
        }
    }

    fn try_change_port(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut (ForwardingPortSpec, bool)),
    ) {
        self.try_change(|ports| {
            if let Some(port) = ports.get_mut(index) {
                change(port);
            }
        });
    }

    /// Changes the ports of both switches, unless the change must be rejected.
    fn try_change(&mut self, change: impl FnOnce(&mut Vec<(ForwardingPortSpec, bool)>)) {
        let mut ports = self.ports.clone();
        change(&mut ports);
        let specs: Vec<_> = ports.iter().filter(|port| port.1).map(|port| port.0.clone()).collect();
        match Tables::build(&self.switches, &specs) {
            Ok(tables) => {
                assert_eq!(reference::shared_address(&specs), None);
                self.reference.change(specs);
                // A replica that skips the tables in between cannot detect that a port was removed
                // temporarily.
                self.forwarder.handle_tables(&tables);
                self.tables = tables;
                self.ports = ports;
            }
            Err(TablesError::DuplicateAddress { mac, .. }) => {
                assert_eq!(reference::shared_address(&specs), Some(mac));
            }
            Err(TablesError::UplinkAddress { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn arrive(&mut self, arrivals: &[Arrival]) {
        self.now = self.now + Duration::from_millis(arrivals[0].wait_ms);
        let Some((spec, true)) = self.ports.get(arrivals[0].port) else { return };
        let ingress = self.tables.slot(spec.id).unwrap();
        for (arrival, frame) in arrivals.iter().zip(&mut self.frames) {
            arrival.write(frame);
        }
        let frames = &mut self.frames[..arrivals.len()];
        let mut verdicts = [Verdict::default(); 32];
        self.forwarder.decide(&self.tables, self.now, ingress, frames, &mut verdicts);
        for (n, arrival) in arrivals.iter().enumerate() {
            arrival.write(&mut self.original);
            let expected = self.reference.outcome(spec.id, self.now, &self.original);
            let actual = self.carry_out(ingress, verdicts[n], &self.frames[n]);
            self.reference.settle(&expected, &actual);
            self.assert_isolated(spec, &self.frames[n], &actual);
            assert!(expected.contains(&actual), "{n}: {actual:?} is not among {expected:?}");
        }
    }

    /// Asserts that no other switch reads from a frame a VLAN that its sender may not use: neither
    /// from the outer tag, nor from an inner tag if the frame leaves untagged. A guest on an access
    /// port is not a switch.
    fn assert_isolated(&self, sender: &ForwardingPortSpec, frame: &Frame, outcome: &Outcome) {
        let (Outcome::Sent(deliveries) | Outcome::Flooded(deliveries)) = outcome else { return };
        for Delivery { port, tci } in deliveries {
            let (port, _) = self.ports.iter().find(|entry| entry.0.id == *port).unwrap();
            let is_guest = port.role == PortRole::Nic && matches!(port.vlan, VlanMode::Access(_));
            match tci {
                Some(tci) => assert!(reference::carries(sender, VlanId::new(tci & 0xfff))),
                None => assert!(is_guest || !frame.has_tag_in_bytes(), "{frame:?}"),
            }
        }
    }

    /// Delivers a frame according to a verdict, as the switching plane does.
    fn carry_out(&self, ingress: PortSlot, verdict: Verdict, frame: &Frame) -> Outcome {
        let tci = |tag: Option<VlanTag>| tag.map(VlanTag::tci);
        match verdict {
            Verdict::Drop(reason) => Outcome::Dropped(reason),
            Verdict::Unicast { egress } => Outcome::Sent(BTreeSet::from([Delivery {
                port: self.tables.port_id(egress).unwrap(),
                tci: tci(frame.meta.tag),
            }])),
            Verdict::Flood { vlan, kind } => {
                let members: Vec<_> = self.tables.flood_members(ingress, vlan, kind).collect();
                let deliveries: BTreeSet<_> = members
                    .iter()
                    .filter(|member| self.tables.check_copy(**member, frame).is_ok())
                    .map(|member| Delivery {
                        port: self.tables.port_id(member.slot).unwrap(),
                        tci: tci(member.rule.apply(frame.meta.tag)),
                    })
                    .collect();
                for member in members {
                    assert_eq!(self.tables.tag_rule(member.slot, vlan), Some(member.rule));
                }
                Outcome::Flooded(deliveries)
            }
        }
    }
}

impl Arrival {
    fn write(&self, frame: &mut Frame) {
        let mut bytes = vec![0u8; self.len.max(14)];
        bytes[..6].copy_from_slice(&self.destination.octets());
        bytes[6..12].copy_from_slice(&self.source.octets());
        bytes[12..14].copy_from_slice(&[0x08, 0x00]);
        for (tag, target) in self.tags.iter().zip(bytes[12..].chunks_exact_mut(4)) {
            target[..2].copy_from_slice(&tag.to_be_bytes());
            target[2..].copy_from_slice(&[0, 2]);
        }
        bytes.truncate(self.len);
        if let (Some(segment_bytes), true) = (self.segment_bytes, self.len > 1000) {
            // An IPv4 header of 20 bytes and a TCP header of 32: 66 bytes in all.
            bytes[34 + 12] = 8 << 4;
            frame.set_bytes(&bytes);
            frame.meta.checksum = Checksum::Partial { start: 34, offset: 16 };
            frame.meta.gso = Some(Gso { kind: GsoKind::Tcp4, segment_bytes, ecn: false });
        } else {
            frame.set_bytes(&bytes);
        }
        frame.meta.tag = self.tag.map(VlanTag::from_tci);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn agrees_with_a_naive_switch_within_bounds(
        ports in prop::collection::vec(any_port(), 2..12),
        ops in prop::collection::vec(any_op(), 1..80),
    ) {
        let mut pair = Pair::new(ports);
        for mut op in ops {
            // Expired entries count until they are swept; no entry expires here.
            if let Op::Batch(arrivals) = &mut op {
                arrivals[0].wait_ms = 0;
            }
            pair.handle(op);
        }
    }

    #[test]
    fn agrees_with_a_naive_switch_over_time(
        mut ports in prop::collection::vec(any_port(), 2..12),
        ops in prop::collection::vec(any_op(), 1..80),
        sweeps in prop::collection::vec(any::<bool>(), 80),
    ) {
        for port in &mut ports {
            port.learned_addresses_max = 1024;
        }
        let mut pair = Pair::new(ports);
        for (op, sweeps) in ops.into_iter().zip(sweeps) {
            pair.handle(op);
            // No verdict depends on whether the sweep has run.
            if sweeps {
                pair.forwarder.sweep_expired(pair.now);
            }
        }
    }
}
