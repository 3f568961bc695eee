//! A team with LACP whose partner is a bond of Linux, in a VM with Debian's kernel.

use std::thread;
use std::time::Duration;

use suimon_rig::ovs::Lacp;
use suimon_rig::{BondStatus, Guest, GuestNic, GuestSpec, Rig, iperf, run, until};

use crate::team_of_two::{FAILED, FAST_LACP, LIMIT, MEMBERS, TeamOfTwo, USABLE};

/// The bond's address.
const FAR: &str = "10.77.0.100";
/// The longest that a stream may stand still when a link fails and nobody is told: the
/// silence is noticed after three LACPDUs that did not come, 3 s, and what was lost
/// meanwhile is sent again twice as late as the last time at most.
const PAUSE_MAX: Duration = Duration::from_secs(8);

/// Streams while links fail and come back, in seconds.
const STREAMS: u32 = 26;

/// A VM whose two NICs are a bond. Each is one end of a wire: the other is a TAP device,
/// which is an uplink like any network card.
struct Bonded {
    // Ends before the devices go.
    team: TeamOfTwo,
    vm: Guest,
    taps: [String; 2],
    /// The system that the bond is to us.
    system: String,
}

impl Bonded {
    /// Waits until both ends use both links.
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
            // What is on the wire is the guests' and LACP's.
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

    /// Waits until the bond has both links in one group with us; then we say the same.
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

/// Waits until the bond uses so many links.
fn wait_ports(vm: &mut Guest, ports: usize) -> BondStatus {
    let mut last = None;
    let reached = until("links in the bond", LIMIT, || {
        let status = last.insert(vm.bond_status(0)?);
        Ok(status.ports == ports)
    });
    reached.unwrap_or_else(|error| panic!("{error:#}: {last:?}"));
    last.unwrap()
}

/// Waits until a hundred frames have left by a member, a second at least, in which none may
/// leave by the other. Streams whose frames were lost meanwhile send when they come to it.
fn check_all_leave_by(team: &TeamOfTwo, member: usize) {
    let before = team.frames();
    thread::sleep(Duration::from_secs(1));
    let mut after = before;
    until("a hundred frames that leave by the other member", LIMIT, || {
        after = team.frames();
        Ok(after[member][1] >= before[member][1] + 100)
    })
    .unwrap_or_else(|error| panic!("{error:#}: {before:?}, {after:?} by {}", MEMBERS[member]));
    assert_eq!(after[1 - member][1], before[1 - member][1], "by {}", MEMBERS[1 - member]);
}

#[test]
fn a_bond_of_linux_and_a_team_use_both_links_and_survive_the_loss_of_each() {
    let rig = Rig::new().unwrap();
    let mut bonded = Bonded::start(&rig);
    println!("{}", bonded.vm.run("uname -r").unwrap());
    bonded.vm.run("iperf3 --server --daemon").unwrap();
    let Bonded { team, vm, taps, .. } = &mut bonded;
    let before = team.frames();
    for direction in [&["-P", "8"][..], &["-P", "8", "--reverse"]] {
        let report = iperf::measure(&team.guests[1].namespace, FAR, 3, direction).unwrap();
        println!("{direction:?}: {} bit/s", report.bits_per_second);
        assert!(report.bits_per_second > 1e6, "{direction:?}");
    }
    team.check_both_carried(before);

    let guest = &team.guests[0].namespace;
    let options = ["-P", "4", "--bidir", "--interval", "0.1", "-b", "2M", "--length", "8K"];
    let report = thread::scope(|scope| {
        let running = scope.spawn(|| iperf::measure(guest, FAR, STREAMS, &options).unwrap());
        iperf::wait_open(guest, 9).unwrap();
        // The wire is cut where nobody here is told of it: LACP finds out.
        vm.set_link(1, false).unwrap();
        team.wait_events(FAILED, "right", 1);
        check_all_leave_by(team, 0);
        vm.set_link(1, true).unwrap();
        team.wait_events(USABLE, "right", 2);
        wait_ports(vm, 2);
        // We lose the carrier, of which the bond is not told.
        run(&["ip", "link", "set", &taps[0], "down"]).unwrap();
        team.wait_events(FAILED, "left", 1);
        check_all_leave_by(team, 1);
        wait_ports(vm, 1);
        run(&["ip", "link", "set", &taps[0], "up"]).unwrap();
        team.wait_events(USABLE, "left", 2);
        assert!(!running.is_finished(), "the streams are to see all of it");
        running.join().unwrap()
    });
    let pause = report.longest_pause().unwrap();
    println!("{} sent again, longest pause {pause:?}", report.retransmits);
    assert_eq!(report.json["end"]["streams"].as_array().unwrap().len(), 8);
    assert!(pause <= PAUSE_MAX, "a stream stood still for {pause:?}");
    bonded.check_whole();
}
