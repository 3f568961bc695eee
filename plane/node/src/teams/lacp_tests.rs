//! Tests of teams in LACP mode, with a partner that runs the same LACP implementation.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use suimon_contract::{EventFilter, Health, TeamMemberState, UplinkDriver};
use suimon_frame::MacAddr;
use suimon_quantity::Time;
use suimon_teaming::MemberId;
use suimon_teaming::lacp::{
    Activity, Lacp, LacpAction, LacpPortSpec, LacpSpec, Lacpdu, Link, PortInfo, PortState, Timer,
};

use super::test_bench::{Bench, MS, set, with_team};
use crate::testing::mac_of;

use TeamMemberState::{Active, Failed};

const FAST: &str = "mode = \"lacp\"\nalgorithm = \"transport-ports\"\nlacp_timer = \"fast\"";
const LINK: Link = Link { speed_mbps: 10_000, full_duplex: true };

/// Physical switch with a port for each device.
struct Partner {
    lacp: Lacp,
    devices: Vec<&'static str>,
    in_use: BTreeMap<MemberId, bool>,
    is_silent: bool,
}

fn partner_spec(system: u8) -> LacpSpec {
    LacpSpec {
        system: MacAddr::new([2, 0, 0, 0, 0x50, system]),
        system_priority: 100,
        admin_key: 9,
        activity: Activity::Active,
        timer: Timer::Fast,
        individual_allowed: false,
        max_active: 32,
        mixed_speeds_allowed: false,
    }
}

impl Partner {
    fn new(system: u8, devices: &[&'static str], now: Time) -> Self {
        let mut lacp = Lacp::new(partner_spec(system)).unwrap();
        for number in 1..=devices.len() as u16 {
            let mac = MacAddr::new([2, 0, 0, 1, system, number as u8]);
            let id = MemberId(number.into());
            lacp.add_member(id, LacpPortSpec { port: number, priority: 1, mac }, now).unwrap();
            lacp.handle_link(id, Some(LINK), now).unwrap();
        }
        Self { lacp, devices: devices.to_vec(), in_use: BTreeMap::new(), is_silent: false }
    }

    fn device(&self, member: MemberId) -> &'static str {
        self.devices[member.0 as usize - 1]
    }

    /// Exchanges frames until both sides have none to send.
    fn talk(&mut self, bench: &mut Bench) {
        for _ in 0..20 {
            bench.settle();
            let mut has_sent = false;
            for (number, device) in (1..).zip(&self.devices) {
                for frame in bench.members.take_sent(device) {
                    has_sent = true;
                    let result = self.lacp.handle_frame(MemberId(number), &frame, bench.now);
                    result.unwrap();
                }
            }
            let mut actions = Vec::new();
            self.lacp.poll(bench.now, &mut actions);
            for action in actions {
                match action {
                    LacpAction::Send { member, frame } if !self.is_silent => {
                        has_sent = true;
                        bench.members.arrive(self.device(member), frame.bytes());
                    }
                    LacpAction::SetMemberUse { member, distributing, .. } => {
                        self.in_use.insert(member, distributing);
                    }
                    _ => {}
                }
            }
            if !has_sent {
                return;
            }
        }
        panic!("there is no end to their talk");
    }

    /// Advances time on both sides.
    fn pass(&mut self, bench: &mut Bench, span: Duration) {
        let end = bench.now + span;
        while bench.now < end {
            bench.pass(50 * MS);
            self.talk(bench);
        }
    }

    fn uses(&self) -> BTreeSet<String> {
        let used = self.in_use.iter().filter(|(_, used)| **used);
        used.map(|(member, _)| self.device(*member).to_owned()).collect()
    }
}

/// Creates a team of two members that are in use on both sides.
fn agreed() -> (Bench, Partner) {
    let mut bench = Bench::new(&with_team(&["a", "b"], FAST));
    let mut partner = Partner::new(1, &["a", "b"], bench.now);
    partner.pass(&mut bench, Duration::from_secs(6));
    assert_eq!((bench.uplink_ports(), partner.uses()), (set(&["a", "b"]), set(&["a", "b"])));
    (bench, partner)
}

#[test]
fn both_sides_aggregate_all_links_and_show_their_partner() {
    let mut bench = Bench::new(&with_team(&["a", "b"], FAST));
    assert_eq!((bench.uplink_ports(), bench.states()), (set(&[]), vec![Failed, Failed]));
    assert!(bench.reasons()[0].contains("LACP does not permit traffic"), "{:?}", bench.reasons());
    assert_eq!(bench.team().lacp_partner, None);
    let mut partner = Partner::new(1, &["a", "b"], bench.now);
    partner.pass(&mut bench, Duration::from_secs(6));
    assert_eq!((bench.uplink_ports(), bench.states()), (set(&["a", "b"]), vec![Active, Active]));
    let team = bench.team();
    let partner = team.lacp_partner.unwrap();
    assert_eq!((partner.system, partner.system_priority), (partner_spec(1).system, 100));
    let lacp = team.members[0].lacp.as_ref().unwrap();
    assert_eq!(lacp.actor.system, mac_of("a"), "ours is a member's address");
    assert_eq!([lacp.actor.port, lacp.partner.port], [1, 1]);
    assert_eq!(
        [&lacp.receive_state, &lacp.mux_state, &lacp.selection],
        ["current", "collecting-distributing", "selected"]
    );
    assert!(lacp.collecting && lacp.distributing && lacp.last_pdu_age_ms.unwrap() <= 1000);
    assert!(lacp.actor.state.contains(&"short-timeout".to_owned()), "{lacp:?}");
    assert_eq!(bench.events(4106).len(), 2);
    assert_eq!(bench.team().condition.health, Health::Up);
}

#[test]
fn a_silent_partner_and_a_lost_carrier_end_the_use_of_a_member() {
    let (mut bench, mut partner) = agreed();
    bench.down("b");
    assert_eq!(bench.uplink_ports(), set(&["a"]), "at once");
    partner.is_silent = true;
    partner.pass(&mut bench, Duration::from_secs(5));
    assert_eq!(bench.uplink_ports(), set(&[]));
    let report = bench.events(4107).pop().unwrap();
    assert!(report.fields["reason"].contains("no LACPDU of the partner is received"), "{report:?}");
    partner.is_silent = false;
    bench.link_up("b");
    partner.pass(&mut bench, Duration::from_secs(8));
    assert_eq!(bench.uplink_ports(), set(&["a", "b"]));
}

#[test]
fn modes_change_live_and_the_partner_is_notified_at_once() {
    let (mut bench, mut partner) = agreed();
    bench.apply(&with_team(&["a", "b"], "mode = \"static\""));
    assert_eq!(bench.uplink_ports(), set(&["a", "b"]), "static mode needs no agreement");
    assert!(bench.team().members[0].lacp.is_none());
    partner.talk(&mut bench);
    assert_eq!(partner.uses(), set(&[]), "the partner was notified");
    bench.apply(&with_team(&["a", "b"], FAST));
    assert_eq!(bench.uplink_ports(), set(&[]));
    partner.pass(&mut bench, Duration::from_secs(8));
    assert_eq!(bench.uplink_ports(), set(&["a", "b"]));
    // A member that leaves sends a last LACPDU; the other member is not affected.
    bench.apply(&with_team(&["a"], FAST));
    partner.talk(&mut bench);
    assert_eq!((bench.uplink_ports(), partner.uses()), (set(&["a"]), set(&["a"])));
    assert_eq!(bench.members.open_sockets("b"), 0);
    // A change of the timer does not interrupt the members.
    bench.apply(&with_team(&["a"], &FAST.replace("fast", "slow")));
    partner.pass(&mut bench, Duration::from_secs(3));
    assert_eq!((bench.uplink_ports(), partner.uses()), (set(&["a"]), set(&["a"])));
    let failed = bench.events(4107).iter().filter(|event| event.fields["member"] == "a").count();
    assert_eq!(failed, 1, "only when LACP began anew");
}

#[test]
fn a_rejected_publication_does_not_affect_lacp() {
    let (mut bench, mut partner) = agreed();
    let sent_frames = |bench: &Bench| {
        let members = bench.team().members;
        members[0].lacp.as_ref().unwrap().counters.lacpdus_rx
    };
    let before = sent_frames(&bench);
    bench.plane.fail_publish(0);
    bench.try_apply(&with_team(&["a", "b"], "mode = \"static\"")).unwrap_err();
    partner.pass(&mut bench, Duration::from_secs(3));
    assert_eq!((bench.uplink_ports(), partner.uses()), (set(&["a", "b"]), set(&["a", "b"])));
    assert!(sent_frames(&bench) > before);
    assert!(bench.events(4107).is_empty());
}

#[test]
fn members_over_af_xdp_take_part_like_others() {
    let mut config = with_team(&["a", "b"], FAST);
    for uplink in &mut config.uplinks {
        uplink.driver = UplinkDriver::AfXdp;
    }
    let mut bench = Bench::new(&config);
    let mut partner = Partner::new(1, &["a", "b"], bench.now);
    partner.pass(&mut bench, Duration::from_secs(6));
    assert_eq!((bench.uplink_ports(), partner.uses()), (set(&["a", "b"]), set(&["a", "b"])));
}

#[test]
fn a_member_without_a_control_socket_takes_no_part_in_lacp() {
    let mut bench = Bench::empty();
    bench.members.refuse("b", true);
    bench.apply(&with_team(&["a", "b"], FAST));
    let mut partner = Partner::new(1, &["a", "b"], bench.now);
    partner.pass(&mut bench, Duration::from_secs(6));
    assert_eq!((bench.uplink_ports(), bench.states()), (set(&["a"]), vec![Active, Failed]));
    assert!(
        bench.reasons()[1].contains("cannot be sent and received: refused"),
        "{:?}",
        bench.reasons()
    );
    bench.members.refuse("b", false);
    partner.pass(&mut bench, Duration::from_secs(40));
    assert_eq!(bench.uplink_ports(), set(&["a", "b"]));
}

#[test]
fn changes_of_a_partner_are_reported_at_a_limited_rate() {
    let (mut bench, mut partner) = agreed();
    // LACPDUs with a forged partner system arrive continuously on one link.
    let state = partner.lacp.member_state(MemberId(1)).unwrap();
    let other = PortInfo { system: MacAddr::new([2, 0, 0, 0, 0, 0x66]), ..state.actor };
    let forged =
        Lacpdu { version: 1, actor: other, partner: state.partner, collector_max_delay: 0 };
    let forged = forged.to_frame(other.system);
    let limit = bench.now + Duration::from_secs(25);
    while bench.now < limit {
        bench.members.arrive("a", forged.bytes());
        partner.pass(&mut bench, 100 * MS);
    }
    let report = bench.events(4116);
    assert!((2..=3).contains(&report.len()), "{report:?}");
    assert_eq!(report[0].fields["from"], partner_spec(1).system.to_string());
    assert_eq!(report[0].fields["to"], other.system.to_string());
    assert_eq!(bench.uplink_ports(), set(&["b"]), "the other link is not disturbed");
    let events = bench.shared.events.page(0, usize::MAX, &EventFilter::default()).events;
    assert!(events.len() < 120, "{} events", events.len());
}

#[test]
fn an_event_of_a_changed_partner_names_the_changes() {
    // Operational keys are 32 times the configured ones, plus 7 for 10 Gbit/s.
    for (change, text) in [
        (LacpSpec { admin_key: 12, ..partner_spec(1) }, "changed its key from 295 to 391."),
        (
            LacpSpec { admin_key: 12, system_priority: 7, ..partner_spec(1) },
            "changed its key from 295 to 391, its system priority from 100 to 7.",
        ),
        (
            LacpSpec { admin_key: 12, ..partner_spec(2) },
            "is 02:00:00:00:50:02 (key 391); it was 02:00:00:00:50:01 (key 295).",
        ),
    ] {
        let (mut bench, mut partner) = agreed();
        let system = change.system.to_string();
        partner.lacp.set_spec(change, bench.now).unwrap();
        partner.pass(&mut bench, Duration::from_secs(20));
        let report = bench.events(4116);
        assert_eq!(report.len(), 2, "one for each member: {report:?}");
        for event in report {
            assert!(event.text.contains(text), "{}", event.text);
            let fields = ["from", "to", "from_key", "to_key"].map(|name| &event.fields[name]);
            let former_system = partner_spec(1).system.to_string();
            assert_eq!(fields, [&former_system, &system, &"295".to_owned(), &"391".to_owned()]);
        }
    }
}

#[test]
fn a_looped_link_is_reported_and_not_used() {
    let mut bench = Bench::new(&with_team(&["a", "b"], FAST));
    for _ in 0..60 {
        for (from, to) in [("a", "b"), ("b", "a")] {
            for frame in bench.members.take_sent(from) {
                bench.members.arrive(to, &frame);
            }
        }
        bench.pass(100 * MS);
    }
    assert_eq!((bench.uplink_ports(), bench.states()), (set(&[]), vec![Failed, Failed]));
    let report = bench.events(4114);
    assert_eq!((report.len(), report[0].fields["port"].as_str()), (2, "2"));
    assert!(bench.reasons()[0].contains("is looped back"), "{:?}", bench.reasons());
    // The loop is removed.
    bench.pass(Duration::from_secs(10));
    assert_eq!(bench.events(4115).len(), 2);
}

#[test]
fn a_side_that_stays_out_of_sync_is_reported_after_a_minute() {
    let (mut bench, mut partner) = agreed();
    // The partner sends LACPDUs, but selects only one link for its group.
    let spec = LacpSpec { max_active: 1, ..partner_spec(1) };
    partner.lacp.set_spec(spec, bench.now).unwrap();
    partner.pass(&mut bench, Duration::from_secs(70));
    assert_eq!(bench.uplink_ports().len(), 1);
    let report = bench.events(4112);
    assert_eq!((report.len(), report[0].fields["side"].as_str()), (1, "partner"));
    partner.lacp.set_spec(partner_spec(1), bench.now).unwrap();
    partner.pass(&mut bench, Duration::from_secs(10));
    assert_eq!((bench.uplink_ports(), bench.events(4113).len()), (set(&["a", "b"]), 1));
}

/// Frames of a peer cause a bounded number of iterations and distributions.
#[test]
fn a_flood_of_frames_is_received_in_bounded_batches() {
    let (mut bench, _) = agreed();
    let noise = [1_u8; 60];
    for _ in 0..1000 {
        bench.members.arrive("a", &noise);
    }
    bench.settle();
    assert_eq!(bench.members.waiting("a"), 1000 - 8, "a pause follows");
    let port = bench.fakes.port_of("a").unwrap();
    bench.settle_woken(&BTreeSet::from([port]));
    assert_eq!(bench.members.waiting("a"), 1000 - 8);
    bench.pass(20 * MS);
    assert_eq!(bench.members.waiting("a"), 1000 - 16);
    assert_eq!(bench.team().members[0].lacp.as_ref().unwrap().counters.unknown_rx, 16);
    // A socket that became readable without a frame is paused, too.
    let other = bench.fakes.port_of("b").unwrap();
    bench.settle_woken(&BTreeSet::from([other]));
    bench.members.arrive("b", &noise);
    bench.settle();
    assert_eq!(bench.members.waiting("b"), 1);
    bench.pass(20 * MS);
    assert_eq!(bench.members.waiting("b"), 0);
}

#[test]
fn partners_are_notified_when_lacp_ends() {
    let (mut bench, partner) = agreed();
    let mut partner = partner;
    for device in ["a", "b"] {
        bench.members.take_sent(device);
    }
    bench.stop();
    for (number, device) in [(1, "a"), (2, "b")] {
        let last = bench.members.take_sent(device).pop().unwrap();
        partner.lacp.handle_frame(MemberId(number), &last, bench.now).unwrap();
        let state = partner.lacp.member_state(MemberId(number)).unwrap().partner.state;
        assert!(!state.has(PortState::SYNCHRONIZATION), "{state:?}");
    }
}
