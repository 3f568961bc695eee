//! Teams of uplinks with an independent switch.

use std::time::Duration;

use suimon_rig::ovs::Lacp;
use suimon_rig::{Process, Rig, iperf, wait_until};

use crate::team_of_two::{FAILED, FAST_LACP, LIMIT, MEMBERS, USABLE};
use crate::teamed::Teamed;

/// Interval of pings.
const EVERY: Duration = Duration::from_millis(10);

/// Continuous pings from a guest to the far side; dropping this ends them.
struct Pings(Process);

impl Pings {
    /// Starts the pings, and waits for a hundred replies.
    fn begin(rig: &Rig, teamed: &Teamed) -> Self {
        let every = EVERY.as_secs_f64().to_string();
        let arguments = ["ping", "-n", "-i", &every, teamed.address.as_str()];
        let guest = &teamed.team.guests[0].namespace;
        let pings = Self(guest.start(rig, "ping", &arguments).unwrap());
        pings.wait_more(100);
        pings
    }

    /// Returns the sequence numbers of the replies so far.
    fn replies(&self) -> Vec<u64> {
        let log = self.0.log();
        let number =
            |line: &str| line.split("icmp_seq=").nth(1)?.split(' ').next()?.parse::<u64>().ok();
        log.lines().filter_map(number).collect()
    }

    /// Waits for `count` further replies.
    fn wait_more(&self, count: usize) {
        let before = self.replies().len();
        wait_until("replies", LIMIT, || Ok(self.replies().len() >= before + count)).unwrap();
    }

    /// Returns the number of requests without a reply between the first and the last reply, and the
    /// longest row of them.
    fn lost(&self) -> (u64, u64) {
        let replies = self.replies();
        let gaps = replies.windows(2).map(|pair| pair[1].saturating_sub(pair[0] + 1));
        (gaps.clone().sum(), gaps.max().unwrap_or(0))
    }
}

/// Number of streams that should use both members: all 32 use the same member with a probability of
/// 2^-31, because a team does not move a stream that never pauses.
const STREAMS: usize = 32;
/// Rate and block size of each stream, low enough that no queue drops frames, after which TCP would
/// pause a stream for long.
const PACE: [&str; 4] = ["-b", "1M", "--length", "8K"];

/// Runs streams in each direction, and checks that both members carry frames and that the status
/// reports both.
fn check_streams(rig: &Rig, teamed: &Teamed) {
    let _server = iperf::serve(rig, teamed.peer.namespace()).unwrap();
    let guest = &teamed.team.guests[1].namespace;
    for (direction, key) in [(&[][..], "tx"), (&["--reverse"], "rx")] {
        let before = teamed.team.frames();
        let options = [direction, &PACE].concat();
        let mut streams =
            iperf::Client::begin(rig, guest, &teamed.address, STREAMS, &options).unwrap();
        wait_until("streams on both members", LIMIT, || Ok(shares(teamed, key).is_some())).unwrap();
        teamed.team.wait_both_used(before, usize::from(key == "tx"));
        streams.wait_flow(key).unwrap();
        println!("{direction:?}: {} bit/s", streams.end().unwrap().bits_per_second);
    }
}

/// Returns the members' shares of the frames in one direction (`rx` or `tx`) in parts per million,
/// once both carry more than 1 Mbit/s.
fn shares(teamed: &Teamed, key: &str) -> Option<[u64; 2]> {
    let status = teamed.team.status();
    let number = |member: usize, measure: &str| {
        status["members"][member][format!("{key}_{measure}")].as_u64().unwrap()
    };
    let is_loud = |member: usize| number(member, "bps") > 1_000_000;
    let shares = [0, 1].map(|member| number(member, "share_ppm"));
    if ![0, 1].into_iter().all(is_loud) {
        return None;
    }
    println!("{key} shares: {shares:?}");
    assert!((999_998..=1_000_000).contains(&shares.iter().sum::<u64>()), "{shares:?}");
    Some(shares)
}

/// Both ends agree, guests' frames are forwarded, and continue after loss and return of a carrier.
#[test]
fn a_team_in_lacp_mode_carries_frames_to_a_bond_and_survives_a_lost_carrier() {
    let rig = Rig::new().unwrap();
    let teamed = Teamed::start(&rig, FAST_LACP, Lacp::Active);
    let Teamed { team, peer, .. } = &teamed;
    team.wait_whole(&peer.system(0).unwrap());
    check_streams(&rig, &teamed);
    // Each link is cut, so that one of them carries the pings.
    for (link, member) in MEMBERS.iter().enumerate() {
        let pings = Pings::begin(&rig, &teamed);
        let cuts = team.because(FAILED, member, "its link is down");
        teamed.set_link(link, false);
        team.wait_reason(FAILED, member, "its link is down", cuts + 1);
        pings.wait_more(100);
        let (lost_pings, longest_loss) = pings.lost();
        println!(
            "{lost_pings} pings lost with {member}, at most {:?} in a row",
            EVERY * longest_loss as u32
        );
        assert!(team.guests[1].namespace.reaches(&teamed.address));
        drop(pings);
        teamed.set_link(link, true);
        team.wait_state(link, "active");
        team.wait_events(USABLE, member, 2);
        team.wait_whole(&peer.system(0).unwrap());
    }
}

#[test]
fn of_two_ends_either_may_be_passive() {
    for (partner_mode, actor_mode) in [(Lacp::Passive, Lacp::Active), (Lacp::Active, Lacp::Passive)]
    {
        let rig = Rig::new().unwrap();
        let keys = format!("{FAST_LACP}\nlacp_active = {}", actor_mode == Lacp::Active);
        let teamed = Teamed::start(&rig, &keys, partner_mode);
        teamed.team.wait_whole(&teamed.peer.system(0).unwrap());
        for (end, lacp) in [("partner", partner_mode), ("actor", actor_mode)] {
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
