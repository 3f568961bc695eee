//! Connections over teams whose members' carriers flap continuously.

use std::thread;
use std::time::{Duration, Instant};

use suimon_rig::ovs::Lacp;
use suimon_rig::{Namespace, Rig, iperf, wait_until};

use crate::bridged::{Bridged, FAR};
use crate::team_of_two::{FAILED, FAST_LACP, LIMIT, MEMBERS, TEAM_DOWN, TeamOfTwo, USABLE};
use crate::teamed::Teamed;

/// Time after a link's return in which the other link is not cut. Open vSwitch reports that a link
/// collects, but discards its frames until it has received a LACPDU, of which there is one per
/// second.
const SETTLED_LACP: Duration = Duration::from_millis(1500);
/// Reason of failures that a cut causes. Others are caused by LACP: on a loaded machine, an end may
/// not be scheduled for the 3 s of the timeout.
const CUT: &str = "its link is down";

/// Reproducible pseudo-random numbers (xorshift, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % end
    }

    fn wait_ms(&mut self, min_ms: u64, max_ms: u64) {
        thread::sleep(Duration::from_millis(min_ms + self.below(max_ms - min_ms)));
    }
}

/// Number of times that the test has cut a member's link.
#[derive(Clone, Copy, Debug, Default)]
struct Cuts {
    all: usize,
    /// Number of cuts while the member was active.
    in_use: usize,
}

/// Cuts links and restores them, until each was cut `in_use` times while it was active. Never cuts
/// the last active member, and waits at least `settled` after a link was restored.
fn flap(
    team: &TeamOfTwo,
    in_use: usize,
    settled: Duration,
    set_link: impl Fn(usize, bool),
) -> [Cuts; 2] {
    let mut dice = Random(0x5eed_0b0e);
    let mut cuts = [Cuts::default(); 2];
    let mut back_at = Instant::now();
    while cuts.iter().any(|cuts| cuts.in_use < in_use) {
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

/// Runs eight streams in each direction while links flap, until each member lost its carrier
/// `in_use` times while active. Then asserts that all streams survived, the members are active, and
/// the failures were reported.
fn survive(
    rig: &Rig,
    team: &TeamOfTwo,
    far: (&Namespace, &str),
    near: &str,
    (in_use, settled): (usize, Duration),
    set_link: impl Fn(usize, bool),
) {
    let (far, address) = far;
    let guests = [0, 1].map(|guest: usize| &team.guests[guest].namespace);
    let _servers = [far, guests[1]].map(|namespace| iperf::serve(rig, namespace).unwrap());
    let options = ["--reverse", "--interval", "0.1", "-b", "10M", "--length", "16K"];
    let clients = [(guests[0], address), (far, near)];
    let mut clients = clients.map(|(namespace, target)| {
        iperf::Client::begin(rig, namespace, target, 8, &options).unwrap()
    });
    let cuts = flap(team, in_use, settled, set_link);
    println!("{cuts:?}");
    for (client, direction) in clients.iter_mut().zip(["in", "out"]) {
        client.wait_flow(direction).unwrap();
    }
    for (client, direction) in clients.into_iter().zip(["in", "out"]) {
        let report = client.end().unwrap();
        // The length of a pause depends on the machine, and with Open vSwitch on TCP's
        // retransmission timers, which double.
        println!(
            "{direction}: {} bit/s, {} segments sent again, longest pause {:?}",
            report.bits_per_second,
            report.retransmits,
            report.longest_pause().unwrap()
        );
        assert_eq!(report.json["end"]["streams"].as_array().unwrap().len(), 8);
    }
    let mut other_failures = 0;
    for (member, cuts) in cuts.iter().enumerate() {
        team.wait_state(member, "active");
        let name = MEMBERS[member];
        let event_count = |id| team.events(id, Some(name));
        // Each cut of an active member is reported, and each return to use. Both events of the last
        // cut may be recorded after the status changed.
        wait_until("pairs of events", LIMIT, || {
            let failed = event_count(FAILED);
            Ok(failed >= cuts.in_use && event_count(USABLE) == failed + 1)
        })
        .unwrap_or_else(|error| panic!("{error:#}: {name}: {cuts:?}"));
        let (failed, by_cut) = (event_count(FAILED), team.because(FAILED, name, CUT));
        println!("{name}: {failed} failures, {by_cut} of them by cuts");
        assert!(failed >= cuts.in_use && by_cut <= cuts.all, "{name}: {cuts:?}");
        other_failures += failed - by_cut;
    }
    assert!(team.events(TEAM_DOWN, None) <= other_failures, "the team was down");
}

fn with_lacp(in_use: usize) {
    let rig = Rig::new().unwrap();
    let teamed = Teamed::start(&rig, FAST_LACP, Lacp::Active);
    let far = (teamed.peer.namespace(), teamed.address.as_str());
    let near = teamed.address_of(1);
    survive(&rig, &teamed.team, far, &near, (in_use, SETTLED_LACP), |link, up| {
        teamed.set_link(link, up);
    });
    teamed.team.wait_whole(&teamed.peer.system(0).unwrap());
}

fn switch_independent(in_use: usize) {
    let rig = Rig::new().unwrap();
    let keys = "mode = \"switch-independent\"\nalgorithm = \"hyper-v-port\"";
    let bridged = Bridged::start(&rig, keys);
    let near = bridged.team.guests[1].address();
    let far = (&bridged.far, FAR);
    survive(&rig, &bridged.team, far, &near, (in_use, Duration::ZERO), |link, up| {
        bridged.set_link(link, up);
    });
    bridged.all_reach();
}

#[test]
fn streams_over_a_team_with_lacp_survive_flapping() {
    with_lacp(1);
}

#[test]
fn streams_over_a_team_that_its_switch_does_not_know_survive_flapping() {
    switch_independent(1);
}

mod full {
    /// Takes about half a minute.
    #[test]
    fn streams_over_a_team_with_lacp_survive_half_a_minute_of_flapping() {
        super::with_lacp(4);
    }

    #[test]
    fn streams_over_a_team_that_its_switch_does_not_know_survive_half_a_minute_of_flapping() {
        super::switch_independent(5);
    }
}
