//! What somebody on a member's link can do to a team: frames of the slow protocols as fast
//! as they go, beside a partner that goes on speaking.

use std::time::{Duration, Instant};

use suimon_frame::{MacAddr, VnetHeader};
use suimon_rig::iperf::Report;
use suimon_rig::ovs::Lacp;
use suimon_rig::{Rig, iperf, prefer_threads};
use suimon_teaming::lacp::{Lacpdu, PortInfo, PortState};

use crate::packet_tap::PacketTap;
use crate::team_of_two::{FAILED, FAST_LACP, LIMIT, MEMBERS, TEAM_DOWN, USABLE};
use crate::teamed::Teamed;

/// Well above the 3 s in which a partner that is not heard counts as silent.
const FLOOD: Duration = Duration::from_secs(5);
/// Frames of a flood, at least.
const FRAMES: u64 = 100_000;
/// Share of a CPU that the threads that read LACPDUs may use meanwhile. They read a bounded number
/// of frames in a turn and pause between turns, so the share falls when a loaded machine delays
/// them; on an idle one it is a tenth of this.
const SHARE_MAX: f64 = 0.1;
/// A frame that the kernel lets arrive at a device with an MTU of 1500, four bytes longer
/// than one without a tag may be.
const OVERSIZE: usize = 1518;

/// A LACPDU from another system that is in sync with us, and would take the link over.
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

/// Frames made of that LACPDU that no receiver may take.
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
    // Lengths of the actor's, the partner's and the collector's TLV; other subtypes.
    let lengths = [with_octet(17, 19), with_octet(37, 0), with_octet(57, 255)];
    let subtypes = [0, 3, 10, 255].map(|subtype| with_octet(14, subtype));
    [&cut[..], &lengths, &subtypes, &[long]].concat()
}

/// What came of a flood on the first member's link.
struct Flooded {
    sent: u64,
    /// Share of a CPU that the threads of teams used.
    share: f64,
    /// Streams of a guest, into it, meanwhile.
    report: Report,
}

/// Sends these frames again and again as fast as they go, while a guest has streams.
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
    // A partner that is kept from its CPU for 3 s is silent, which the flood is not to cause.
    prefer_threads(daemon, "suimon-team").unwrap();
    prefer_threads(teamed.peer.process(), "").unwrap();
    let mut streams = iperf::Client::begin(rig, guest, &address, 8, &options).unwrap();
    let used = daemon.threads_cpu_time("suimon-team").unwrap();
    let started_at = Instant::now();
    let mut sent = 0;
    for frame in frames.iter().cycle() {
        // What finds no room is lost, as on a wire.
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
    /// Fails if it cost too much of a CPU, or a stream.
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
    // The forged LACPDUs are taken, on their own link only.
    team.wait_events(FAILED, MEMBERS[0], 1);
    assert_eq!((team.events(FAILED, Some(MEMBERS[1])), team.events(TEAM_DOWN, None)), (0, 0));
    // The true partner is heard again.
    let failures = team.events(FAILED, Some(MEMBERS[0]));
    team.wait_events(USABLE, MEMBERS[0], failures + 1);
    team.wait_state(0, "active");
    team.wait_whole(&teamed.peer.system(0).unwrap());
}
