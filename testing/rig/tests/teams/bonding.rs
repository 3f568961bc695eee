//! A team with LACP whose partner is a bond of Linux in a VM with Debian's kernel.

use suimon_rig::ovs::Lacp;
use suimon_rig::{BondStatus, Guest, GuestNic, GuestSpec, Rig, iperf, run, wait_until};

use crate::team_of_two::{FAILED, FAST_LACP, LIMIT, MEMBERS, TeamOfTwo, USABLE};

/// Address of the bond.
const FAR: &str = "10.77.0.100";
/// Number of successive frames that must leave by the remaining member after the other one has
/// failed.
const FRAMES: u64 = 500;
/// Number of streams that should use both links: all 32 use the same link with a probability of
/// 2^-31.
const STREAMS: usize = 32;
/// Rate and block size of each stream, low enough that no queue drops frames, after which TCP would
/// pause a stream for long.
const PACE: [&str; 4] = ["-b", "500K", "--length", "4K"];
/// Maximum number of frames that leave by a failed member after its failure was reported: a worker
/// completes its batch of at most 32 frames, and another one may have 1024 frames and a batch in
/// flight to the worker that owns the member's queue. A loaded machine may delay both.
const UNDER_WAY_MAX: u64 = 1024 + 2 * 32;

/// VM whose two NICs are a bond. Each NIC is connected to a TAP device of the host, which is used
/// as an uplink like any network device.
struct Bonded {
    // Declared first, so that the daemon ends before the devices are removed.
    team: TeamOfTwo,
    vm: Guest,
    taps: [String; 2],
    /// System ID of the bond.
    system: String,
}

impl Bonded {
    /// Starts VM and team, and waits until both ends use both links.
    fn start(rig: &Rig) -> Self {
        let taps = [rig.device("t"), rig.device("t")];
        let nic = |link: usize| {
            GuestNic::on_tap(taps[link].clone(), format!("52:54:00:1b:00:{link:02x}"))
        };
        let spec = GuestSpec {
            name: "bonding".to_owned(),
            nics: vec![nic(0), nic(1)],
            cpus: 1,
            ..GuestSpec::default()
        };
        let mut vm = Guest::start(rig, &spec).unwrap();
        for tap in &taps {
            // Only frames of the guests and of LACP must be on the wire.
            run(&["sysctl", "-qw", &format!("net.ipv6.conf.{tap}.disable_ipv6=1")]).unwrap();
        }
        vm.load("bonding", "max_bonds=0").unwrap();
        vm.bond(0, Lacp::Active, FAR).unwrap();
        let system = vm.bond_system(0).unwrap();
        let team = TeamOfTwo::start(rig, FAST_LACP, "", &taps);
        for member in MEMBERS {
            team.wait_events(USABLE, member, 1);
        }
        let mut bonded = Self { team, vm, taps, system };
        bonded.check_whole();
        bonded
    }

    /// Waits until the bond has both links in one aggregator with the team, and the team reports
    /// the same.
    fn check_whole(&mut self) {
        let bond = wait_ports(&mut self.vm, 2);
        assert_eq!(bond.aggregators.len(), 2, "{bond:?}");
        assert_eq!(bond.aggregators[0], bond.aggregators[1], "{bond:?}");
        self.team.wait_whole(&self.system);
        let status = self.team.status();
        for member in status["members"].as_array().unwrap() {
            assert_eq!(member["lacp"]["actor"]["system"], bond.partner.as_str(), "{bond:?}");
        }
        for guest in &self.team.guests {
            assert!(guest.namespace.reaches(FAR), "{} reaches {FAR}", guest.nic);
        }
    }
}

/// Waits until the bond uses `ports` links, and returns its state.
fn wait_ports(vm: &mut Guest, ports: usize) -> BondStatus {
    let mut last = None;
    let reached = wait_until("links in the bond", LIMIT, || {
        let status = last.insert(vm.bond_status(0)?);
        Ok(status.ports == ports)
    });
    reached.unwrap_or_else(|error| panic!("{error:#}: {last:?}"));
    last.unwrap()
}

/// Waits until [`FRAMES`] successive frames have left by a member and none by the other one, which
/// has failed. The new distribution applies to batches that begin after it was published; until
/// then, frames in flight may leave by the failed member.
fn wait_all_sent_by(team: &TeamOfTwo, member: usize) {
    let reported = team.frames();
    let (mut before, mut after) = (reported, reported);
    let result = wait_until("frames that leave by the other member only", LIMIT, || {
        after = team.frames();
        if after[1 - member][1] != before[1 - member][1] {
            before = after;
        }
        Ok(after[member][1] >= before[member][1] + FRAMES)
    });
    let counts = || format!("{reported:?}, {before:?}, {after:?} by {}", MEMBERS[member]);
    result.unwrap_or_else(|error| panic!("{error:#}: {}", counts()));
    let late_frames = after[1 - member][1] - reported[1 - member][1];
    println!("{late_frames} frames left by {} after its failure", MEMBERS[1 - member]);
    assert!(late_frames <= UNDER_WAY_MAX, "{}", counts());
}

fn a_bond_of_linux_and_a_team_use_both_links_and_survive_the_loss_of_each() {
    let rig = Rig::new().unwrap();
    let mut bonded = Bonded::start(&rig);
    println!("{}", bonded.vm.run("uname -r").unwrap());
    bonded.vm.run("iperf3 --server --daemon").unwrap();
    let Bonded { team, vm, taps, .. } = &mut bonded;
    let (first_guest, second_guest) = (&team.guests[0].namespace, &team.guests[1].namespace);
    for direction in [&[][..], &["--reverse"]] {
        let before = team.frames();
        let options = [direction, &PACE].concat();
        let streams = iperf::Client::begin(&rig, second_guest, FAR, STREAMS, &options).unwrap();
        let direction_index = usize::from(direction.is_empty());
        team.wait_both_used(before, direction_index);
        println!("{direction:?}: {} bit/s", streams.end().unwrap().bits_per_second);
    }

    let options = ["--bidir", "--interval", "0.1", "-b", "2M", "--length", "8K"];
    let mut streams = iperf::Client::begin(&rig, first_guest, FAR, 4, &options).unwrap();
    // Cuts a link without loss of carrier at either end, so that only LACP can detect it.
    vm.set_link(1, false).unwrap();
    team.wait_state(1, "failed");
    team.wait_reason(FAILED, "right", "no LACPDU of the partner is received", 1);
    wait_all_sent_by(team, 0);
    streams.wait_flow("streams by the left link").unwrap();
    vm.set_link(1, true).unwrap();
    team.wait_state(1, "active");
    wait_ports(vm, 2);
    // The team's end loses its carrier, the bond's end does not.
    run(&["ip", "link", "set", &taps[0], "down"]).unwrap();
    team.wait_state(0, "failed");
    team.wait_reason(FAILED, "left", "its link is down", 1);
    wait_all_sent_by(team, 1);
    wait_ports(vm, 1);
    streams.wait_flow("streams by the right link").unwrap();
    run(&["ip", "link", "set", &taps[0], "up"]).unwrap();
    team.wait_state(0, "active");
    wait_ports(vm, 2);
    streams.wait_flow("streams at their end").unwrap();
    for member in MEMBERS {
        team.wait_events(USABLE, member, 2);
    }
    let report = streams.end().unwrap();
    // The length of a pause depends on the machine.
    let pause = report.longest_pause().unwrap();
    println!("{} segments sent again, longest pause {pause:?}", report.retransmits);
    assert_eq!(report.json["end"]["streams"].as_array().unwrap().len(), 8);
    bonded.check_whole();
}

mod full {
    #[test]
    fn a_bond_of_linux_and_a_team_use_both_links_and_survive_the_loss_of_each() {
        super::a_bond_of_linux_and_a_team_use_both_links_and_survive_the_loss_of_each();
    }
}
