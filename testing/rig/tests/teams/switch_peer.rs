//! Teams of uplinks against a switch that nobody here wrote.

use std::thread;
use std::time::Duration;

use suimon_rig::ovs::Lacp;
use suimon_rig::{Rig, iperf, until};

use crate::team_of_two::{FAILED, FAST_LACP, LIMIT, MEMBERS, USABLE};
use crate::teamed::Teamed;

/// Between two pings.
const EVERY: Duration = Duration::from_millis(10);
/// What a lost carrier may cost.
const LOSS_MAX: Duration = Duration::from_millis(50);

/// Has a guest ping for `seconds`, while `act` is done in the middle. Returns how many
/// were sent and lost.
fn pings(teamed: &Teamed, seconds: u32, act: impl FnOnce()) -> (u64, u64) {
    let every = EVERY.as_secs_f64().to_string();
    let count = (f64::from(seconds) / EVERY.as_secs_f64()).round().to_string();
    let words =
        ["ping", "-q", "-n", "-i", &every, "-W", "1", "-c", &count, teamed.address.as_str()];
    let limit = Duration::from_secs(u64::from(seconds) + 10);
    let guest = &teamed.team.guests[0].namespace;
    let said = thread::scope(|scope| {
        let pinging = scope.spawn(|| guest.run_any(&words, limit).unwrap());
        thread::sleep(Duration::from_secs(seconds.into()) / 2);
        act();
        pinging.join().unwrap()
    });
    let line = said.stdout.lines().find(|line| line.contains("packets transmitted")).unwrap();
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    println!("{line}");
    (numbers[0], numbers[0] - numbers[1])
}

/// Waits until a second of pings loses none. Open vSwitch says of a link that has come back
/// that it takes frames, and throws them away until it has heard a LACPDU on it.
fn settle(teamed: &Teamed) {
    let is_quiet = || Ok(pings(teamed, 1, || ()).1 == 0);
    until("a second without loss", LIMIT, is_quiet).unwrap();
}

/// So long that the rates of a second, which the status has, are of the streams alone.
const STREAM_SECONDS: u32 = 4;
/// So many that chance does not lay them all on one member, once in 8 million times each way. A
/// team does not move a stream that never pauses, and of eight they were all there once in 128.
const STREAMS: &str = "24";

/// Sends streams each way, which use both members both ways; meanwhile the status tells of
/// frames on both.
fn check_streams(rig: &Rig, teamed: &Teamed) {
    let _server = iperf::serve(rig, teamed.peer.namespace()).unwrap();
    let before = teamed.team.frames();
    let guest = &teamed.team.guests[1].namespace;
    for (direction, key) in [(&["-P", STREAMS][..], "tx"), (&["-P", STREAMS, "--reverse"], "rx")] {
        let report = thread::scope(|scope| {
            let streams = scope.spawn(|| {
                iperf::measure(guest, &teamed.address, STREAM_SECONDS, direction).unwrap()
            });
            until("streams on both members", LIMIT, || Ok(shares(teamed, key).is_some())).unwrap();
            streams.join().unwrap()
        });
        println!("{direction:?}: {} bit/s", report.bits_per_second);
        assert!(report.bits_per_second > 1e7, "{direction:?}");
    }
    teamed.team.check_both_carried(before);
}

/// The members' shares of what goes one way in parts per million, once both have one.
fn shares(teamed: &Teamed, key: &str) -> Option<[u64; 2]> {
    let status = teamed.team.status();
    let number =
        |at: usize, of: &str| status["members"][at][format!("{key}_{of}")].as_u64().unwrap();
    let is_loud = |at: usize| number(at, "bps") > 1_000_000;
    let shares = [0, 1].map(|at| number(at, "share_ppm"));
    if ![0, 1].into_iter().all(is_loud) {
        return None;
    }
    println!("{key} shares: {shares:?}");
    assert!((999_998..=1_000_000).contains(&shares.iter().sum::<u64>()), "{shares:?}");
    Some(shares)
}

/// Both ends agree, guests' frames pass, and go on when a carrier is lost and comes back.
#[test]
fn a_team_in_lacp_mode_carries_frames_to_a_bond_and_survives_a_lost_carrier() {
    let rig = Rig::new().unwrap();
    let teamed = Teamed::start(&rig, FAST_LACP, Lacp::Active);
    let Teamed { team, peer, .. } = &teamed;
    team.wait_whole(&peer.system(0).unwrap());
    check_streams(&rig, &teamed);
    // Whichever member the pings leave and come by: each is cut twice.
    for cut in 1..=2 {
        for (link, member) in MEMBERS.iter().enumerate() {
            settle(&teamed);
            let (sent, lost) = pings(&teamed, 2, || teamed.set_link(link, false));
            let allowed = (LOSS_MAX.as_millis() / EVERY.as_millis()) as u64;
            assert!(sent == 200 && lost <= allowed, "{lost} of {sent} pings lost with {member}");
            team.wait_events(FAILED, member, cut);
            assert!(team.guests[1].namespace.reaches(&teamed.address));
            teamed.set_link(link, true);
            team.wait_events(USABLE, member, cut + 1);
        }
    }
    team.wait_whole(&peer.system(0).unwrap());
}

#[test]
fn of_two_ends_either_may_be_passive() {
    for (theirs, ours) in [(Lacp::Passive, Lacp::Active), (Lacp::Active, Lacp::Passive)] {
        let rig = Rig::new().unwrap();
        let keys = format!("{FAST_LACP}\nlacp_active = {}", ours == Lacp::Active);
        let teamed = Teamed::start(&rig, &keys, theirs);
        teamed.team.wait_whole(&teamed.peer.system(0).unwrap());
        for (end, lacp) in [("partner", theirs), ("actor", ours)] {
            let bits = &teamed.team.status()["members"][0]["lacp"][end]["state"];
            let speaks = bits.as_array().unwrap().iter().any(|bit| bit == "activity");
            assert_eq!(speaks, lacp == Lacp::Active, "{end}: {bits}");
        }
        check_streams(&rig, &teamed);
    }
}

#[test]
fn members_over_af_xdp_take_part_like_others() {
    let rig = Rig::new().unwrap();
    let teamed = Teamed::over(&rig, FAST_LACP, "driver = \"af_xdp\"", Lacp::Active);
    teamed.team.wait_whole(&teamed.peer.system(0).unwrap());
    check_streams(&rig, &teamed);
    for (link, member) in MEMBERS.iter().enumerate() {
        teamed.set_link(link, false);
        teamed.team.wait_events(FAILED, member, 1);
        assert!(teamed.team.guests[1].namespace.reaches(&teamed.address));
        teamed.set_link(link, true);
        teamed.team.wait_events(USABLE, member, 2);
    }
}
