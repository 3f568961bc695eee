use super::*;
use suimon_frame::VlanId;

const SWITCH: SwitchId = SwitchId(1);

fn port(id: u32) -> ForwardingPortSpec {
    ForwardingPortSpec::new(PortId(id), SWITCH, PortRole::Nic)
}

fn build(ports: &[ForwardingPortSpec]) -> Result<Tables, TablesError> {
    Tables::build(&[SwitchSpec::new(SWITCH)], ports)
}

#[test]
fn contradictions_are_refused() {
    let mac = Some(MacAddr::new([2, 0, 0, 0, 0, 1]));
    let group = MacAddr::new([1, 0, 0, 0, 0, 1]);
    let id = PortId(1);
    let on_other_switch = ForwardingPortSpec { switch: SwitchId(2), ..port(1) };
    let uplink =
        ForwardingPortSpec { mac, ..ForwardingPortSpec::new(id, SWITCH, PortRole::Uplink) };
    let refused = |ports: &[ForwardingPortSpec]| build(ports).unwrap_err();
    assert_eq!(refused(&[port(1), port(2), port(1)]), TablesError::DuplicatePort(id));
    let unknown = TablesError::UnknownSwitch { port: id, switch: SwitchId(2) };
    assert_eq!(refused(&[on_other_switch]), unknown);
    for mtu in [0, 67, 9217] {
        let error = TablesError::Mtu { port: id, mtu };
        assert_eq!(refused(&[ForwardingPortSpec { mtu, ..port(1) }]), error);
    }
    for mac in [group, MacAddr::default()] {
        let error = TablesError::NotAStationAddress { port: id, mac };
        assert_eq!(refused(&[ForwardingPortSpec { mac: Some(mac), ..port(1) }]), error);
    }
    assert_eq!(refused(&[uplink]), TablesError::UplinkAddress { port: id });
    let duplicate = [SwitchSpec::new(SWITCH), SwitchSpec::new(SWITCH)];
    assert_eq!(Tables::build(&duplicate, &[]).unwrap_err(), TablesError::DuplicateSwitch(SWITCH));
    for ageing in [Duration::ZERO, AGEING_MAX + Duration::from_nanos(1), Duration::MAX] {
        let switch = SwitchSpec { id: SWITCH, ageing };
        let error = TablesError::Ageing { switch: SWITCH, ageing };
        assert_eq!(Tables::build(&[switch], &[]).unwrap_err(), error);
    }
    let many: Vec<_> = (0..=65_535).map(port).collect();
    assert_eq!(
        refused(&many),
        TablesError::TooManyObjects { kind: "ports", count: 65_536, max: 65_535 }
    );
}

#[test]
fn an_address_belongs_to_one_port_of_a_vlan() {
    let mac = MacAddr::new([2, 0, 0, 0, 0, 1]);
    let port_on = |id, vlan| ForwardingPortSpec { mac: Some(mac), vlan, ..port(id) };
    let access = |n| VlanMode::Access(VlanId::new(n));
    let trunk = |vlans: &[u16], native| VlanMode::Trunk {
        allowed: vlans.iter().filter_map(|n| VlanId::new(*n)).collect(),
        native: VlanId::new(native),
    };
    let conflict = |port, other| {
        Err(TablesError::DuplicateAddress { port: PortId(port), other: PortId(other), mac })
    };
    let outcome = |ports: &[ForwardingPortSpec]| build(ports).map(|_| ());
    assert_eq!(outcome(&[port_on(1, access(5)), port_on(2, access(5))]), conflict(2, 1));
    assert_eq!(outcome(&[port_on(1, access(5)), port_on(2, access(6))]), Ok(()));
    assert_eq!(outcome(&[port_on(1, access(0)), port_on(2, trunk(&[5], 0))]), Ok(()));
    assert_eq!(outcome(&[port_on(3, access(5)), port_on(2, trunk(&[7, 5], 0))]), conflict(3, 2));
    assert_eq!(
        outcome(&[port_on(1, access(5)), port_on(2, access(7)), port_on(3, trunk(&[8], 7))]),
        conflict(3, 2)
    );

    let tables =
        build(&[port_on(1, access(5)), port_on(2, trunk(&[7, 8], 9)), port_on(3, trunk(&[6], 0))]);
    let tables = tables.unwrap();
    for (vlan, owner) in [(5, 1), (7, 2), (8, 2), (9, 2), (6, 3)] {
        let slot = tables.configured_port(SWITCH, VlanId::new(vlan), mac);
        assert_eq!(slot.and_then(|slot| tables.port_id(slot)), Some(PortId(owner)), "{vlan}");
    }
    assert_eq!(tables.configured_port(SWITCH, VlanId::new(10), mac), None);
    assert_eq!(tables.configured_port(SwitchId(2), VlanId::new(5), mac), None);
}

#[test]
fn the_largest_host_fits() {
    let ports: Vec<_> = (0..65_535)
        .map(|n: u32| {
            let [_, _, a, b] = n.to_be_bytes();
            ForwardingPortSpec { mac: Some(MacAddr::new([2, 0, 0, 0, a, b])), ..port(n) }
        })
        .collect();
    let tables = build(&ports).unwrap();
    assert_eq!(tables.port_count(), 65_535);
    let first = tables.slot(PortId(0)).unwrap();
    assert_eq!(tables.flood_members(first, None, crate::FloodKind::Group).count(), 65_534);
}

#[test]
fn any_difference_shows_in_the_fingerprint() {
    let fingerprint_of = |spec: ForwardingPortSpec| build(&[spec, port(9)]).unwrap().fingerprint;
    let trunk = |set: VlanSet| VlanMode::Trunk { allowed: set, native: None };
    let changed = [
        port(1),
        port(2),
        ForwardingPortSpec { learned_addresses_max: 7, ..port(1) },
        ForwardingPortSpec { mac: Some(MacAddr::new([2, 0, 0, 0, 0, 1])), ..port(1) },
        ForwardingPortSpec { vlan: VlanMode::Access(VlanId::new(1)), ..port(1) },
        ForwardingPortSpec { vlan: trunk(VlanSet::all()), ..port(1) },
        ForwardingPortSpec { vlan: trunk(VlanSet::all_tagged()), ..port(1) },
    ];
    let mut sums: Vec<_> = changed.into_iter().map(fingerprint_of).collect();
    sums.sort_unstable();
    sums.dedup();
    assert_eq!(sums.len(), 7);
    assert_eq!(fingerprint_of(port(1)), fingerprint_of(port(1)));
}
