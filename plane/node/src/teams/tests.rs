//! Tests of teams without LACP: links, configuration, control sockets, loads.

use std::collections::BTreeSet;
use std::time::Duration;

use suimon_contract::{Health, TeamMemberState};
use suimon_frame::{Announcement, MacAddr, VlanId, VlanTag};
use suimon_ports::{LinkProperties, LinkSpeed};
use suimon_switch::{AddressView, PortCountersView};
use suimon_teaming::{BUCKETS, BucketLoad};

use super::test_bench::{Bench, DOWN, JOBS_MAX, MS, RETRY, set, udp, with_team};
use crate::PortKey;
use crate::testing::{LINK, host, mac_of};

use TeamMemberState::{Active, Failed, Inactive};

const STATIC: &str = "mode = \"static\"\nalgorithm = \"transport-ports\"";
const INDEPENDENT: &str = "mode = \"switch-independent\"\nalgorithm = \"hyper-v-port\"";

#[test]
fn a_lost_link_moves_traffic_and_its_return_moves_it_back() {
    for keys in [STATIC, INDEPENDENT] {
        let mut bench = Bench::new(&with_team(&["a", "b"], keys));
        assert_eq!(
            (bench.uplink_ports(), bench.states()),
            (set(&["a", "b"]), vec![Active, Active])
        );
        assert_eq!((bench.events(4104).len(), bench.events(4106).len()), (1, 2), "{keys}");
        bench.down("a");
        assert_eq!((bench.uplink_ports(), bench.states()), (set(&["b"]), vec![Failed, Active]));
        let report = &bench.events(4107)[0];
        assert_eq!((report.subject.as_str(), report.fields["member"].as_str()), ("team/both", "a"));
        assert_eq!(report.fields["reason"], "its link is down");
        assert_eq!(bench.reasons()[0], "its link is down");
        bench.down("b");
        assert_eq!(bench.uplink_ports(), set(&[]));
        assert_eq!(bench.team().condition.health, Health::Down);
        assert_eq!(bench.events(4105).len(), 1);
        bench.link_up("a");
        assert_eq!((bench.uplink_ports(), bench.states()), (set(&["a"]), vec![Active, Failed]));
        bench.link_up("b");
        assert_eq!(bench.uplink_ports(), set(&["a", "b"]), "{keys}");
        assert_eq!(bench.team().condition.health, Health::Up);
    }
}

/// A link that goes down and up again before the team thread runs counts as lost.
#[test]
fn a_short_loss_of_the_link_is_processed() {
    let mut bench = Bench::new(&with_team(&["a", "b"], STATIC));
    bench.fakes.set_link("a", DOWN);
    bench.fakes.set_link("a", LINK);
    bench.settle();
    assert_eq!(bench.states(), [Active, Active]);
    assert_eq!(bench.events(4107).len(), 1);
}

/// Links may change faster than the worker writes events, for example while a disk stalls.
#[test]
fn jobs_beyond_the_queue_of_the_worker_are_dropped_and_links_are_followed() {
    let mut bench = Bench::new(&with_team(&["a", "b"], STATIC));
    for _ in 0..JOBS_MAX {
        for link in [DOWN, LINK] {
            bench.fakes.set_link("a", link);
            bench.poll(&BTreeSet::new());
        }
    }
    assert_eq!(bench.remove_jobs(), JOBS_MAX);
    bench.down("a");
    assert_eq!(bench.states(), [Failed, Active]);
}

#[test]
fn addresses_are_announced_where_they_are_now_with_their_vlans() {
    let mut bench = Bench::new(&with_team(&["a", "b"], INDEPENDENT));
    let web = bench.shared.ids().port(&PortKey::Nic("web".parse().unwrap())).unwrap();
    let learned = MacAddr::new([2, 0, 0, 0, 0, 0x77]);
    let vlan = VlanId::new(7);
    let view = |mac, vlan| AddressView { mac, vlan, port: web, is_static: false, age: None };
    let own_address = MacAddr::new([2, 0, 0, 0, 0, 1]);
    bench.plane.set_addresses(vec![view(own_address, None), view(learned, vlan)]);
    let active_member = |bench: &Bench| {
        let members = bench.team().members;
        members.iter().position(|member| member.nics > 0 && member.state == Active).unwrap()
    };
    assert!(active_member(&bench) < 2);
    for device in ["a", "b"] {
        bench.members.take_sent(device);
    }
    bench.down("a");
    bench.down("b");
    bench.link_up("b");
    let expected = [
        Announcement::reverse_arp(own_address, None).bytes().to_vec(),
        Announcement::reverse_arp(learned, vlan.map(VlanTag::for_vlan)).bytes().to_vec(),
    ];
    assert_eq!(bench.members.take_sent("b")[..2], expected);
    assert!(bench.members.take_sent("a").is_empty() || bench.events(4107).len() == 2);
    // Announcements by a device whose buffer is full are sent later.
    bench.members.fill("a", true);
    bench.link_up("a");
    bench.down("b");
    assert!(bench.members.take_sent("a").is_empty());
    bench.members.fill("a", false);
    bench.pass(20 * MS);
    assert_eq!(bench.members.take_sent("a"), expected);
    bench.pass(Duration::from_secs(3));
    assert!(bench.members.take_sent("a").is_empty(), "once");
}

/// The change that adds the member opens its device; the control socket is opened afterwards.
#[test]
fn addresses_that_move_to_a_new_member_are_announced_there() {
    let mut bench = Bench::new(&with_team(&["b"], INDEPENDENT));
    let ids = bench.shared.ids();
    let nics = [("web", 1), ("db", 2)].map(|(name, number)| {
        let port = ids.port(&PortKey::Nic(name.parse().unwrap())).unwrap();
        (port, MacAddr::new([2, 0, 0, 0, 0, number]))
    });
    let views =
        nics.map(|(port, mac)| AddressView { mac, vlan: None, port, is_static: true, age: None });
    bench.plane.set_addresses(views.to_vec());
    bench.apply(&with_team(&["b", "a"], INDEPENDENT));
    let members = bench.team().members;
    assert_eq!(members.iter().map(|member| member.nics).collect::<Vec<_>>(), [1, 1]);
    let announced = nics.map(|(_, mac)| Announcement::reverse_arp(mac, None).bytes().to_vec());
    bench.pass(20 * MS);
    let sent_frames = bench.members.take_sent("a");
    assert_eq!(sent_frames.len(), 1);
    assert!(announced.contains(&sent_frames[0]), "{sent_frames:?}");
}

/// The number of announcements is bounded however many addresses a guest has, and they are sent in
/// bursts.
#[test]
fn many_addresses_are_announced_in_bursts() {
    let mut bench = Bench::new(&with_team(&["a"], INDEPENDENT));
    let web = bench.shared.ids().port(&PortKey::Nic("web".parse().unwrap())).unwrap();
    let view = |number: u32| AddressView {
        mac: MacAddr::new([2, 1, 0, 0, (number >> 8) as u8, number as u8]),
        vlan: None,
        port: web,
        is_static: false,
        age: None,
    };
    bench.plane.set_addresses((0..10_000).map(view).collect());
    bench.down("a");
    bench.members.take_sent("a");
    bench.link_up("a");
    let first = bench.members.take_sent("a").len();
    assert!((1..=64).contains(&first), "{first}");
    bench.pass(Duration::from_secs(10));
    assert_eq!(first + bench.members.take_sent("a").len(), 4096);
}

#[test]
fn a_team_needs_its_min_links() {
    let mut bench = Bench::new(&with_team(&["a", "b", "c"], &format!("{STATIC}\nmin_links = 2")));
    bench.down("a");
    assert_eq!(bench.uplink_ports(), set(&["b", "c"]));
    bench.down("b");
    assert_eq!((bench.uplink_ports(), bench.states()), (set(&[]), vec![Failed, Failed, Inactive]));
    assert_eq!(bench.reasons()[2], "the team is down: it needs 2 members");
    let reason = bench.team().condition.reason.unwrap();
    assert!(reason.starts_with("1 member usable, min_links is 2; a: its link"), "{reason}");
    assert_eq!(bench.shared.switch("wan").unwrap().condition.health, Health::Down);
    // With a lower `min_links` the team is up again, without interruption.
    bench.apply(&with_team(&["a", "b", "c"], STATIC));
    assert_eq!(bench.uplink_ports(), set(&["c"]));
    assert_eq!(bench.shared.switch("wan").unwrap().condition.health, Health::Up);
}

#[test]
fn a_standby_takes_over_and_is_released() {
    let keys = format!("{INDEPENDENT}\nstandby = \"b\"\nprimary = \"a\"");
    let mut bench = Bench::new(&with_team(&["a", "b"], &keys));
    assert_eq!((bench.uplink_ports(), bench.states()), (set(&["a"]), vec![Active, Inactive]));
    assert!(bench.reasons()[1].contains("standby"), "{:?}", bench.reasons());
    bench.down("a");
    assert_eq!((bench.uplink_ports(), bench.states()), (set(&["b"]), vec![Failed, Active]));
    let fields = &bench.events(4108)[0].fields;
    assert_eq!((fields["standby"].as_str(), fields["failed"].as_str()), ("b", "a"));
    assert_eq!(bench.events(4110).last().unwrap().fields["to"], "b");
    bench.link_up("a");
    assert_eq!(bench.uplink_ports(), set(&["a"]));
    assert_eq!((bench.events(4109).len(), bench.events(4111).len()), (1, 1));
}

#[test]
fn mode_algorithm_and_members_change_live() {
    let mut bench = Bench::new(&with_team(&["a", "b"], STATIC));
    let ports = ["a", "b"].map(|device| bench.fakes.port_of(device));
    bench.apply(&with_team(&["a", "b"], INDEPENDENT));
    let nics: Vec<u32> = bench.team().members.iter().map(|member| member.nics).collect();
    assert_eq!(nics, [1, 1], "each NIC lives on one member");
    bench.apply(&with_team(&["c", "b"], STATIC));
    assert_eq!(bench.uplink_ports(), set(&["b", "c"]));
    assert_eq!([bench.fakes.port_of("a"), bench.fakes.port_of("b")], [None, ports[1]]);
    assert_eq!([bench.members.open_sockets("a"), bench.members.open_sockets("c")], [0, 1]);
    let topology = bench.plane.topology();
    assert_eq!((topology.teams.len(), topology.teams[0].members.len()), (1, 2));
    // The MTU is the smallest of the members'.
    let mut config = with_team(&["c", "b"], STATIC);
    config.uplinks.iter_mut().for_each(|uplink| uplink.mtu = Some(1380));
    bench.apply(&config);
    assert_eq!(bench.team().mtu, 1380);
    // An uplink of the team becomes the uplink of the switch, and a member again.
    let mut without_team = config.clone();
    without_team.teams.clear();
    without_team.switches[0].uplink = Some("b".parse().unwrap());
    bench.apply(&without_team);
    assert!(bench.plane.topology().teams.is_empty());
    assert_eq!(bench.fakes.port_of("b"), ports[1]);
    assert_eq!(bench.members.open_sockets("b"), 0);
    bench.apply(&config);
    assert_eq!(bench.uplink_ports(), set(&["b", "c"]));
}

#[test]
fn a_team_that_no_switch_uses_opens_nothing() {
    let mut config = with_team(&["a", "b"], STATIC);
    config.switches[0].kind = suimon_contract::SwitchKind::Private;
    config.switches[0].uplink = None;
    let bench = Bench::new(&config);
    assert_eq!((bench.fakes.port_of("a"), bench.members.open_sockets("a")), (None, 0));
    let team = bench.team();
    assert_eq!((team.condition.health, team.switch), (Health::Down, None));
    assert_eq!(team.condition.reason.as_deref(), Some("not open, because no switch uses the team"));
    assert_eq!(bench.states(), [Failed, Failed]);
}

/// A change that the plane rejects affects neither the distribution nor the status.
#[test]
fn a_rejected_publication_leaves_the_team_as_it_is() {
    let mut bench = Bench::new(&with_team(&["a", "b"], STATIC));
    let before = bench.team();
    bench.plane.fail_publish(0);
    let error = bench.try_apply(&with_team(&["a", "b"], INDEPENDENT)).unwrap_err();
    assert!(error.contains("the switch rejected its forwarding tables"), "{error}");
    bench.settle();
    assert_eq!(bench.team(), before);
    bench.down("a");
    assert_eq!(bench.uplink_ports(), set(&["b"]));
}

#[test]
fn a_rejected_distribution_is_passed_again() {
    let mut bench = Bench::new(&with_team(&["a", "b"], STATIC));
    bench.plane.refuse_distributions(2);
    bench.fakes.set_link("a", super::test_bench::DOWN);
    bench.poll(&BTreeSet::new());
    assert_eq!(bench.uplink_ports(), set(&["a", "b"]));
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.uplink_ports(), set(&["b"]));
}

#[test]
fn a_member_that_cannot_be_opened_fails_without_affecting_others() {
    let mut bench = Bench::empty();
    bench.fakes.set_missing("a", true);
    bench.apply(&with_team(&["a", "b"], STATIC));
    assert_eq!((bench.uplink_ports(), bench.states()), (set(&["b"]), vec![Failed, Active]));
    assert!(bench.reasons()[0].contains("Missing"), "{:?}", bench.reasons());
    assert_eq!(bench.members.open_sockets("a"), 0, "the member waits for its device");
    bench.fail("b", "the cable was cut");
    assert_eq!(bench.states(), [Failed, Failed]);
    assert_eq!(bench.reasons()[1], "the cable was cut");
    assert_eq!(bench.members.open_sockets("b"), 0);
}

#[test]
fn members_with_one_address_are_not_used_together() {
    let mut bench = Bench::empty();
    bench.fakes.set_mac("b", mac_of("a"));
    bench.apply(&with_team(&["a", "b"], STATIC));
    assert_eq!((bench.uplink_ports(), bench.states()), (set(&["a"]), vec![Active, Failed]));
    assert!(bench.reasons()[1].contains("is also that of member `a`"), "{:?}", bench.reasons());
}

#[test]
fn a_control_socket_that_cannot_be_opened_is_retried_without_affecting_the_team() {
    let mut bench = Bench::empty();
    bench.members.refuse("a", true);
    bench.apply(&with_team(&["a", "b"], STATIC));
    assert_eq!(bench.uplink_ports(), set(&["a", "b"]), "frames need no control socket");
    let report = bench.events(4006);
    assert_eq!((report.len(), report[0].subject.as_str()), (1, "uplink/a"));
    assert_eq!(report[0].fields["reason"], "refused: Denied");
    bench.pass(10 * RETRY);
    assert_eq!(bench.events(4006).len(), 1, "said once");
    bench.members.refuse("a", false);
    bench.pass(10 * RETRY);
    assert_eq!((bench.members.open_sockets("a"), bench.events(4007).len()), (1, 1));
}

#[test]
fn the_socket_of_a_recreated_device_is_opened_again() {
    let mut bench = Bench::new(&with_team(&["a", "b"], STATIC));
    bench.members.replace_device("a");
    bench.settle();
    assert_eq!(bench.events(4006).len(), 1);
    assert_eq!(bench.members.open_sockets("a"), 0);
    bench.pass(RETRY);
    assert_eq!((bench.members.open_sockets("a"), bench.events(4007).len()), (1, 1));
}

#[test]
fn rates_and_shares_are_those_of_the_last_second() {
    let mut bench = Bench::new(&with_team(&["a", "b"], STATIC));
    let port = |device| bench.fakes.port_of(device).unwrap();
    let ports = [port("a"), port("b")];
    let count = |bench: &Bench, bytes: [u64; 2]| {
        for (port, tx_bytes) in ports.into_iter().zip(bytes) {
            let rx_bytes = tx_bytes / 10;
            let counters = PortCountersView { rx_bytes, tx_bytes, ..PortCountersView::default() };
            bench.plane.set_counters(port, counters);
        }
    };
    count(&bench, [9_000_000, 5]);
    bench.pass(Duration::from_secs(1));
    let rates = |bench: &Bench| {
        let members = bench.team().members;
        [0, 1].map(|index| {
            (members[index].tx_bps, members[index].rx_bps, members[index].tx_share_ppm)
        })
    };
    assert_eq!(rates(&bench), [(0, 0, 0); 2], "the first look says nothing");
    count(&bench, [9_750_000, 250_005]);
    bench.pass(Duration::from_secs(1));
    assert_eq!(rates(&bench), [(6_000_000, 600_000, 750_000), (2_000_000, 200_000, 250_000)]);
    assert_eq!(bench.team().members[0].counters.tx_bytes, 9_750_000);
    assert_eq!(bench.team().members[0].flows_share_ppm, 500_000);
    assert_eq!(bench.team().speed_mbps, 20_000);
    bench.pass(Duration::from_secs(1));
    assert_eq!(rates(&bench), [(0, 0, 0); 2]);
    let slow = LinkSpeed { mbps: None, full_duplex: None };
    bench.link("a", LinkProperties { is_up: true, speed: slow });
    assert_eq!((bench.team().speed_mbps, bench.team().members[0].speed_mbps), (10_000, None));
}

#[test]
fn a_dynamic_team_moves_flows_by_their_loads() {
    let keys = "mode = \"static\"\nalgorithm = \"dynamic\"";
    let mut bench = Bench::new(&with_team(&["a", "b"], keys));
    let topology = bench.plane.topology();
    let team = &topology.teams[0];
    // All load is on flows that leave by the first member.
    let nic = topology.ports.iter().find(|port| port.spec.mac.is_some()).unwrap().spec.clone();
    let slot = team.distribution.slot(team.members[0].id).unwrap();
    let busy: Vec<u32> = (0..64)
        .filter(|flow| {
            let key = team
                .distribution
                .key(&udp(nic.mac.unwrap(), *flow), team.distribution.ingress_context(nic.id));
            team.distribution.choose(&key).unwrap().member == slot
        })
        .collect();
    assert!(busy.len() > 8, "{busy:?}");
    let mut loads = Box::new([BucketLoad::default(); BUCKETS]);
    for flow in &busy {
        let key = team
            .distribution
            .key(&udp(nic.mac.unwrap(), *flow), team.distribution.ingress_context(nic.id));
        let bucket = team.distribution.bucket(&key).unwrap().index();
        loads[bucket] = BucketLoad { bytes: 1 << 20, member: Some(slot) };
    }
    bench.plane.set_loads(team.port, loads);
    bench.pass(Duration::from_secs(1));
    let after = bench.plane.topology().teams[0].distribution.clone();
    let moved = busy.iter().filter(|flow| {
        let key = after.key(&udp(nic.mac.unwrap(), **flow), after.ingress_context(nic.id));
        after.choose(&key).unwrap().member != slot
    });
    let moved = moved.count();
    assert!(moved > busy.len() / 4 && moved < busy.len(), "{moved} of {}", busy.len());
    // Without loads, the distribution does not change.
    let distributions_before = bench.plane.distributions_set();
    bench.pass(Duration::from_secs(3));
    assert_eq!(bench.plane.distributions_set(), distributions_before);
}

#[test]
fn events_that_a_flapping_link_causes_are_bounded() {
    let mut bench = Bench::new(&with_team(&["a", "b"], STATIC));
    for _ in 0..300 {
        bench.down("a");
        bench.link_up("a");
    }
    let events = bench.events(4106).len() + bench.events(4107).len();
    assert!(events < 60, "{events}");
    assert_eq!(
        bench.uplink_ports(),
        set(&["a", "b"]),
        "the limit on events does not delay distributions"
    );
    bench.down("b");
    assert_eq!(bench.events(4107).last().unwrap().fields["member"], "b", "others are told of");
}

/// Frames that the host sends on a TAP arrive at the switch's own queues.
#[test]
fn lacpdus_have_a_socket_by_every_device_but_a_tap() {
    let mut config = with_team(&["a", "b"], STATIC);
    config.uplinks[0].driver = suimon_contract::UplinkDriver::Tap;
    let bench = Bench::new(&config);
    assert_eq!(bench.uplink_ports(), set(&["a", "b"]));
    assert_eq!([bench.members.open_sockets("a"), bench.members.open_sockets("b")], [0, 1]);
}

#[test]
fn two_teams_share_nothing() {
    let config = host(
        "[[switch]]\nname = \"one\"\nkind = \"external\"\nuplink = \"left\"\n\
         [[switch]]\nname = \"two\"\nkind = \"external\"\nuplink = \"both\"\n\
         [[team]]\nname = \"left\"\nmembers = [\"a\"]\nmode = \"static\"\n\
         [[team]]\nname = \"both\"\nmembers = [\"b\", \"c\"]\nmode = \"static\"\n\
         [[uplink]]\nname = \"a\"\ndevice = \"a\"\n[[uplink]]\nname = \"b\"\ndevice = \"b\"\n\
         [[uplink]]\nname = \"c\"\ndevice = \"c\"\n",
    );
    let mut bench = Bench::new(&config);
    bench.down("a");
    let healths: Vec<_> = bench.shared.teams().iter().map(|team| team.condition.health).collect();
    assert_eq!(healths, [Health::Down, Health::Up]);
    assert_eq!(bench.shared.uplink("c").unwrap().switch.unwrap().as_str(), "two");
    assert_eq!(bench.shared.switch("one").unwrap().condition.health, Health::Down);
}
