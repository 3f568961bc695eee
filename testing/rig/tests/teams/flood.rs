//! A flood of slow protocol frames on a member's link, in addition to the partner's own LACPDUs.

use std::time::{Duration, Instant};

use suimon_frame::{MacAddr, VnetHeader};
use suimon_rig::iperf::Report;
use suimon_rig::ovs::Lacp;
use suimon_rig::{Rig, iperf, prefer_threads};
use suimon_teaming::lacp::{Lacpdu, PortInfo, PortState};

use crate::packet_tap::PacketTap;
use crate::team_of_two::{FAILED, FAST_LACP, LIMIT, MEMBERS, TEAM_DOWN, USABLE};
use crate::teamed::Teamed;

/// Duration of a flood, well above the 3 s after which a silent partner expires.
const FLOOD: Duration = Duration::from_secs(5);
/// Minimum number of frames of a flood.
const FRAMES: u64 = 100_000;
/// Maximum share of a CPU that the threads which receive LACPDUs may use. They read a bounded
/// number of frames in a turn and pause between turns, so the share falls when a loaded machine
/// delays them; on an idle machine it is a tenth of this.
const SHARE_MAX: f64 = 0.1;
/// Length of a frame that the kernel accepts on a device with an MTU of 1500, four bytes more than
/// an untagged frame may have.
const OVERSIZE: usize = 1518;

/// Returns a LACPDU of another system that is in sync and would take over the link.
fn forged(number: u8) -> Vec<u8> {
    let system = MacAddr::new([0x02, 0xf0, 0, 0, 0, number]);
    let state = PortState::ACTIVITY
        .or(PortState::TIMEOUT)
        .or(PortState::AGGREGATION)
        .or(PortState::SYNCHRONIZATION);
    let port = u16::from(number);
    let actor = PortInfo { system_priority: 1, system, key: port, port_priority: 1, port, state };
    let pdu = Lacpdu { version: 1, actor, partner: actor, collector_max_delay: 0 };
    pdu.to_frame(system).bytes().to_vec()
}

/// Returns invalid frames derived from that LACPDU, which a receiver must discard.
fn spoiled() -> Vec<Vec<u8>> {
    let sound = forged(1);
    let cut = [15, 17, 29, 44, 56, 72, 123].map(|len| sound[..len].to_vec());
    let with_octet = |offset: usize, octet: u8| {
        let mut frame = sound.clone();
        frame[offset] = octet;
        frame
    };
    let mut long = sound.clone();
    long.resize(OVERSIZE, 0);
    // Wrong lengths of the actor, partner and collector TLVs, and other subtypes.
    let lengths = [with_octet(17, 19), with_octet(37, 0), with_octet(57, 255)];
    let subtypes = [0, 3, 10, 255].map(|subtype| with_octet(14, subtype));
    [&cut[..], &lengths, &subtypes, &[long]].concat()
}

/// Result of a flood on the first member's link.
struct Flooded {
    sent: u64,
    /// Share of a CPU that the daemon's team threads used.
    share: f64,
    /// Report of the streams to a guest during the flood.
    report: Report,
}

/// Sends these frames repeatedly at the maximum rate, while a guest receives streams.
fn flood(rig: &Rig, teamed: &mut Teamed, frames: &[Vec<u8>]) -> Flooded {
    let peer = teamed.peer.namespace();
    let link = &teamed.peer.links()[0][0];
    peer.run(&["ip", "link", "set", link, "mtu", "1600"]).unwrap();
    let tap = PacketTap::open_mute(peer, link);
    let _server = iperf::serve(rig, peer).unwrap();
    let guest = &teamed.team.guests[0].namespace;
    let address = teamed.address.clone();
    let daemon = teamed.team.daemon.process();
    let options = ["--reverse", "--interval", "0.1", "-b", "2M", "--length", "8K"];
    // A partner that is not scheduled for 3 s expires, which must not be attributed to the flood.
    prefer_threads(daemon, "suimon-team").unwrap();
    prefer_threads(teamed.peer.process(), "").unwrap();
    let mut streams = iperf::Client::begin(rig, guest, &address, 8, &options).unwrap();
    let used = daemon.threads_cpu_time("suimon-team").unwrap();
    let started_at = Instant::now();
    let mut sent = 0;
    for frame in frames.iter().cycle() {
        // A frame without room in the queue is lost, as on a wire.
        sent += u64::from(tap.has_sent(&VnetHeader::default(), frame));
        if sent >= FRAMES && started_at.elapsed() >= FLOOD {
            break;
        }
        assert!(started_at.elapsed() < LIMIT, "only {sent} frames in {LIMIT:?}");
    }
    let used = daemon.threads_cpu_time("suimon-team").unwrap() - used;
    let share = used.as_secs_f64() / started_at.elapsed().as_secs_f64();
    streams.wait_flow("streams after the flood").unwrap();
    Flooded { sent, share, report: streams.end().unwrap() }
}

impl Flooded {
    /// Fails if the flood used too much CPU time or ended a stream.
    fn check(&self) {
        let Self { sent, share, report } = self;
        let pause = report.longest_pause().unwrap();
        println!(
            "{sent} frames; {:.2} % of a processor; {} bit/s, {} sent again, longest pause \
            {pause:?}",
            share * 100.0,
            report.bits_per_second,
            report.retransmits
        );
        assert!(*share < SHARE_MAX, "{share} of a processor");
        assert_eq!(report.json["end"]["streams"].as_array().unwrap().len(), 8);
    }
}

#[test]
fn a_flood_of_frames_that_are_no_lacpdus_moves_nothing_and_costs_little() {
    let rig = Rig::new().unwrap();
    let mut teamed = Teamed::start(&rig, FAST_LACP, Lacp::Active);
    flood(&rig, &mut teamed, &spoiled()).check();
    for id in [FAILED, TEAM_DOWN] {
        assert_eq!(teamed.team.events(id, None), 0, "event {id}");
    }
    teamed.team.wait_whole(&teamed.peer.system(0).unwrap());
}

#[test]
fn a_flood_of_forged_lacpdus_takes_its_own_link_and_no_other() {
    let rig = Rig::new().unwrap();
    let mut teamed = Teamed::start(&rig, FAST_LACP, Lacp::Active);
    let frames: Vec<Vec<u8>> = (1..=16).map(forged).collect();
    flood(&rig, &mut teamed, &frames).check();
    let team = &teamed.team;
    // Forged LACPDUs affect only their own link.
    team.wait_events(FAILED, MEMBERS[0], 1);
    assert_eq!((team.events(FAILED, Some(MEMBERS[1])), team.events(TEAM_DOWN, None)), (0, 0));
    // The team returns to its partner after the flood.
    let failures = team.events(FAILED, Some(MEMBERS[0]));
    team.wait_events(USABLE, MEMBERS[0], failures + 1);
    team.wait_state(0, "active");
    team.wait_whole(&teamed.peer.system(0).unwrap());
}
