//! The components of the rig work, and remove what they created.

use std::path::Path;
use std::time::Duration;

use suimon_rig::{
    Guest, GuestSpec, Namespace, PortStats, Rig, Testpmd, TestpmdSpec, Veth, iperf, ovs, wait_until,
};

/// Deadline of conditions that take less than a second on an idle machine.
const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn a_guest_boots_and_runs_commands() {
    let rig = Rig::new().unwrap();
    let spec = GuestSpec { name: "plain".to_owned(), ..GuestSpec::default() };
    let mut guest = Guest::start(&rig, &spec).unwrap();
    assert_eq!(guest.run("echo one; echo two").unwrap(), "one\ntwo");
    let output = guest.run_any("false", LIMIT).unwrap();
    assert_eq!(output.code, 1);
    assert!(guest.run("lsmod").unwrap().contains("virtio_net"));
    assert!(guest.run("iperf3 --version").unwrap().contains("iperf 3"));
    assert!(guest.run("ethtool --version").unwrap().contains("ethtool"));
    let id = guest.process().id();
    drop(guest);
    assert!(!Path::new(&format!("/proc/{id}")).exists());
}

/// Orphaned processes end continuously, and the guest's init process reaps each.
fn a_guest_receives_every_command_while_processes_end() {
    let rig = Rig::new().unwrap();
    let spec = GuestSpec { name: "orphans".to_owned(), ..GuestSpec::default() };
    let mut guest = Guest::start(&rig, &spec).unwrap();
    guest.run("(while [ ! -e /tmp/enough ]; do (true &); done) &").unwrap();
    for number in 0..50 {
        let text = format!("command {number} of more words than the line holds at once");
        let output = guest.run_any(&format!("echo {text}"), LIMIT).unwrap();
        assert_eq!(output.stdout, text);
    }
    guest.run("touch /tmp/enough").unwrap();
}

#[test]
fn namespaces_carry_traffic_and_are_removed() {
    let rig = Rig::new().unwrap();
    let (left_namespace, right) =
        (Namespace::new(&rig, "l").unwrap(), Namespace::new(&rig, "r").unwrap());
    let (near, far) = (rig.device("n"), rig.device("f"));
    let veth = Veth::new(&near, &far, &right).unwrap();
    suimon_rig::run(&["ip", "link", "set", veth.near(), "netns", left_namespace.name()]).unwrap();
    left_namespace.address(&near, "10.99.0.1/24").unwrap();
    right.address(&far, "10.99.0.2/24").unwrap();
    assert!(left_namespace.reaches("10.99.0.2"));
    let _server = iperf::serve(&rig, &right).unwrap();
    let report = iperf::measure(&left_namespace, "10.99.0.2", 1, &[]).unwrap();
    assert!(report.bits_per_second > 0.0, "{report:?}");
    assert_eq!(right.checksum_errors().unwrap(), 0);
    let names = [left_namespace.name().to_owned(), right.name().to_owned()];
    let folder = rig.folder().to_owned();
    drop((_server, veth, left_namespace, right, rig));
    for name in names {
        assert!(!Path::new("/run/netns").join(name).exists());
    }
    assert!(!folder.exists());
}

fn testpmd_circulates_frames_through_the_peer() {
    let rig = Rig::new().unwrap();
    let ovs = ovs::OvsDpdk::start(&rig, 0, 1).unwrap();
    let macs = ["02:00:00:00:00:01", "02:00:00:00:00:02"].map(str::to_owned);
    let mut spec = TestpmdSpec::new(ovs.sockets(), macs);
    spec.listens = true;
    let mut testpmd = Testpmd::start(&rig, &spec).unwrap();
    assert_eq!(testpmd.stats().unwrap(), [PortStats::default(); 2]);
    testpmd.start_circulating().unwrap();
    // The two polling threads have a CPU each only while no other process needs one.
    wait_until("frames to circulate", LIMIT, || Ok(testpmd.rate(Duration::from_secs(1))? > 1000.0))
        .unwrap();
}

mod full {
    #[test]
    fn a_guest_receives_every_command_while_processes_end() {
        super::a_guest_receives_every_command_while_processes_end();
    }

    #[test]
    fn testpmd_circulates_frames_through_the_peer() {
        super::testpmd_circulates_frames_through_the_peer();
    }
}
