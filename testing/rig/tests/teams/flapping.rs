//! Connections over teams whose members' carriers come and go without rest.

use std::thread;
use std::time::{Duration, Instant};

use suimon_rig::iperf::Report;
use suimon_rig::ovs::Lacp;
use suimon_rig::{Namespace, Rig, iperf, until};

use crate::bridged::{Bridged, FAR};
use crate::team_of_two::{FAILED, FAST_LACP, LIMIT, MEMBERS, TEAM_DOWN, TeamOfTwo, USABLE};
use crate::teamed::Teamed;

/// The longest that a stream may stand still: what was lost with a member is sent again
/// after 200 ms, Linux's least wait (RFC 6298 has a second), and if that was lost with the
/// next after 400 and 800 ms more.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How long after a link has come back it is not the last one yet. Open vSwitch says of it
/// that it takes frames, and throws them away until it has heard a LACPDU on it, of which
/// there is one a second. What is lost so is sent again each time twice as late, so there is
/// no bound to how long a stream stands still while links flap that is not chance; whether
/// all go on afterwards is judged instead.
const SETTLED_LACP: Duration = Duration::from_millis(1500);
/// By how many seconds the streams are longer than the flapping, whose last round may take
/// longer than its time; what was lost in it five times is sent again within them.
const LEAD: u32 = 16;
/// At their end, in which every stream carries.
const AT_END: Duration = Duration::from_secs(2);

/// Moments that look like chance and are the same in every run (xorshift, Marsaglia 2003).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % end
    }

    fn wait_ms(&mut self, from: u64, to: u64) {
        thread::sleep(Duration::from_millis(from + self.below(to - from)));
    }
}

/// What was done to a member.
#[derive(Clone, Copy, Debug, Default)]
struct Cuts {
    all: usize,
    /// Of them, those while it was in use.
    in_use: usize,
}

/// Takes the carriers of members away and gives them back for a time, never that of the
/// last member in use, and none before `settled` after the last came back.
fn flap(
    team: &TeamOfTwo,
    time: Duration,
    settled: Duration,
    set_link: impl Fn(usize, bool),
) -> [Cuts; 2] {
    let mut dice = Dice(0x5eed_0b0e);
    let mut cuts = [Cuts::default(); 2];
    let mut back_at = Instant::now();
    let end = Instant::now() + time;
    while Instant::now() < end {
        dice.wait_ms(200, 1000);
        let member = dice.below(2) as usize;
        team.wait_state(1 - member, "active");
        thread::sleep(settled.saturating_sub(back_at.elapsed()));
        cuts[member].in_use += usize::from(team.state(member) == "active");
        cuts[member].all += 1;
        set_link(member, false);
        dice.wait_ms(300, 2000);
        set_link(member, true);
        back_at = Instant::now();
    }
    cuts
}

/// Eight streams to a namespace for a time, as they arrive.
fn streams(to: &Namespace, from: &str, seconds: u32) -> Report {
    let options = ["-P", "8", "--reverse", "--interval", "0.1", "-b", "10M", "--length", "16K"];
    iperf::measure(to, from, seconds, &options).unwrap()
}

/// Eight streams each way, which all survive that carriers flap; then the team is whole,
/// and has told what happened.
fn survive(
    rig: &Rig,
    team: &TeamOfTwo,
    far: (&Namespace, &str),
    near: &str,
    seconds: u32,
    (settled, pause_max): (Duration, Option<Duration>),
    set_link: impl Fn(usize, bool),
) {
    let (far, address) = far;
    let guests = [0, 1].map(|guest: usize| &team.guests[guest].namespace);
    let _servers = [far, guests[1]].map(|namespace| iperf::serve(rig, namespace).unwrap());
    let (cuts, reports) = thread::scope(|scope| {
        let running = [(guests[0], address), (far, near)]
            .map(|(to, from)| scope.spawn(move || streams(to, from, seconds + LEAD)));
        iperf::wait_open(guests[0], 9).unwrap();
        iperf::wait_open(far, 9).unwrap();
        let cuts = flap(team, Duration::from_secs(u64::from(seconds)), settled, set_link);
        (cuts, running.map(|running| running.join().unwrap()))
    });
    println!("{cuts:?}");
    for (report, way) in reports.iter().zip(["in", "out"]) {
        let pause = report.longest_pause().unwrap();
        println!(
            "{way}: {} bit/s, {} sent again, longest pause {pause:?}",
            report.bits_per_second, report.retransmits
        );
        assert_eq!(report.json["end"]["streams"].as_array().unwrap().len(), 8);
        assert!(report.least_at_end(AT_END).unwrap() > 0, "a stream does not go on");
        assert!(pause_max.is_none_or(|max| pause <= max), "a stream stood still for {pause:?}");
    }
    for (member, cuts) in cuts.iter().enumerate() {
        assert!(cuts.in_use >= 2, "too few for a judgement: {cuts:?}");
        team.wait_state(member, "active");
        let name = MEMBERS[member];
        let told = |id| team.events(id, Some(name));
        // Each cut of a member in use is told, and each return that made it one.
        until("pairs of events", LIMIT, || Ok(told(USABLE) == told(FAILED) + 1)).unwrap();
        assert!((cuts.in_use..=cuts.all).contains(&told(FAILED)), "{name}: {}", told(FAILED));
    }
    assert_eq!(team.events(TEAM_DOWN, None), 0);
}

#[test]
fn streams_over_a_team_with_lacp_survive_half_a_minute_of_flapping() {
    let rig = Rig::new().unwrap();
    let teamed = Teamed::start(&rig, FAST_LACP, Lacp::Active);
    let far = (teamed.peer.namespace(), teamed.address.as_str());
    let near = teamed.address_of(1);
    survive(&rig, &teamed.team, far, &near, 30, (SETTLED_LACP, None), |link, up| {
        teamed.set_link(link, up);
    });
    teamed.team.wait_whole(&teamed.peer.system(0).unwrap());
}

#[test]
fn streams_over_a_team_that_its_switch_does_not_know_survive_flapping() {
    let rig = Rig::new().unwrap();
    let keys = "mode = \"switch-independent\"\nalgorithm = \"hyper-v-port\"";
    let bridged = Bridged::start(&rig, keys);
    let near = bridged.team.guests[1].address();
    let far = (&bridged.far, FAR);
    survive(&rig, &bridged.team, far, &near, 10, (Duration::ZERO, Some(PAUSE_MAX)), |link, up| {
        bridged.set_link(link, up);
    });
    bridged.all_reach();
}
