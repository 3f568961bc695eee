//! Tests with two guests' namespaces, in which the kernel's network stacks run. No thread reads the
//! TAPs, so every frame that arrives took the kernel path.

use std::process::Command;
use std::sync::Arc;

use suimon_ports::{KernelPathState, OffloadToggles, PortDevice, PortDeviceSpec, TapSpec};

use super::*;
use crate::NetDevices;
use crate::testing::{Notices, TestNetns, TestQueueHost, receive_where};

struct Guest {
    netns: TestNetns,
    device: Option<Box<dyn PortDevice>>,
    port: PortId,
}

struct Bench {
    devices: NetDevices,
    shelf: Arc<TestQueueHost>,
    guests: Vec<Guest>,
}

fn mac(number: u32) -> MacAddr {
    MacAddr::new([2, 0, 0, 0, 7, number as u8])
}

impl Guest {
    fn spec(&self, kernel_path: bool) -> TapSpec {
        TapSpec {
            device: "eth0".to_owned(),
            netns: Some(self.netns.name().to_owned()),
            queue_pairs: 1,
            mac: Some(mac(self.port.0)),
            keeps_mac: false,
            mtu: 1500,
            offload: OffloadToggles::default(),
            may_use_kernel_path: kernel_path,
        }
    }

    /// Adds the other guests' addresses to this guest's neighbour table.
    fn add_neighbours(&self, guests: u32) {
        for other in (1..=guests).filter(|other| *other != self.port.0) {
            let lladdr = mac(other);
            self.netns.run(&format!("ip neigh replace 10.3.0.{other} lladdr {lladdr} dev eth0"));
        }
    }

    /// True if at least one of three pings is answered.
    fn reaches(&self, other: u32) -> bool {
        let address = format!("10.3.0.{other}");
        let arguments = ["netns", "exec", self.netns.name(), "ping", "-qc3", "-i.01", "-W2"];
        let pinged = Command::new("ip").args(arguments).arg(address).output().unwrap();
        pinged.status.success()
    }
}

impl Bench {
    /// Creates guests on ports from 1 on, with each other's addresses in their neighbour tables.
    fn new(guests: u32) -> Self {
        let (devices, shelf) = (NetDevices::new().unwrap(), Arc::new(TestQueueHost::default()));
        let mut bench = Self { devices, shelf, guests: Vec::new() };
        for port in 1..=guests {
            let guest = Guest { netns: TestNetns::new(), device: None, port: PortId(port) };
            bench.guests.push(guest);
            bench.open(port);
            let netns = &bench.guest(port).netns;
            // Frames sent by the guests' stacks on their own would be counted.
            netns.run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1");
            netns.run(&format!("ip addr add 10.3.0.{port}/24 dev eth0"));
            bench.guest(port).add_neighbours(guests);
        }
        bench
    }

    fn open(&mut self, port: u32) {
        let spec = self.guest(port).spec(true);
        let (observer, _) = Notices::new();
        let shelf = Arc::clone(&self.shelf);
        let device = self.devices.open_tap(PortId(port), &spec, shelf, observer).unwrap();
        self.guests[port as usize - 1].device = Some(device);
    }

    fn guest(&self, port: u32) -> &Guest {
        &self.guests[port as usize - 1]
    }

    fn counters(&self, port: u32) -> KernelPathCounters {
        self.devices.kernel_path_counters(PortId(port))
    }

    /// Returns a table with all guests in these groups, at their addresses.
    fn table(&self, groups: &[u32]) -> KernelPathTable {
        let mut table = KernelPathTable::default();
        for (port, group) in (1..).zip(groups) {
            table.ports.insert(
                PortId(port),
                KernelPathPort { group: *group, is_learning: true, mtu: 1500 },
            );
            let address = KernelPathAddress { port: PortId(port), is_static: false };
            table.addresses.insert((*group, mac(port)), address);
        }
        table
    }

    /// True if a ping of a guest is received from its TAP.
    fn reaches_switch(&self, port: u32) -> bool {
        let mut source = self.shelf.source(port, 0);
        receive_where(&mut *source, |frame| frame.bytes().get(12..14) == Some(&[8, 0])).is_some()
    }
}

#[test]
fn frames_take_the_kernel_path_according_to_the_table() {
    let bench = Bench::new(3);
    let [first, second, third] = [1, 2, 3].map(|port| bench.guest(port));
    assert!(!first.reaches(2), "the kernel path is used without a table");
    assert!(bench.reaches_switch(1));

    bench.devices.set_kernel_paths(&bench.table(&[1, 1, 2])).unwrap();
    assert!(first.reaches(2) && second.reaches(1));
    assert!(!first.reaches(3) && !third.reaches(1), "another group");
    let (sent, received) = (bench.counters(1), bench.counters(2));
    assert_eq!((sent.sent_frames, sent.sent_bytes), (6, 6 * 98));
    assert_eq!((received.received_frames, received.received_bytes), (6, 6 * 98));
    assert_eq!(bench.counters(3), KernelPathCounters::default());

    let active_addresses = || {
        bench.devices.kernel_paths.lock().renewed_at = None;
        bench.devices.set_kernel_paths(&bench.table(&[1, 1, 2])).unwrap()
    };
    assert_eq!(active_addresses(), [(1, mac(1)), (1, mac(2))]);
    assert_eq!(active_addresses(), [], "no address has sent since the last report");
    assert!(first.reaches(2));
    let mut closed = bench.table(&[1, 1, 2]);
    closed.ports.remove(&PortId(2));
    bench.devices.set_kernel_paths(&closed).unwrap();
    assert!(!first.reaches(2) && !second.reaches(1));
    let mut unknown = bench.table(&[1, 1, 2]);
    unknown.addresses.remove(&(1, mac(1)));
    bench.devices.set_kernel_paths(&unknown).unwrap();
    assert!(
        !first.reaches(2) && !second.reaches(1),
        "frames of an unknown address take the kernel path"
    );
    assert!(bench.reaches_switch(2));
    bench.devices.set_kernel_paths(&bench.table(&[1, 1, 2])).unwrap();
    assert!(first.reaches(2));
}

#[test]
fn an_address_that_moves_is_forgotten_at_once() {
    let bench = Bench::new(3);
    let [first, second, third] = [1, 2, 3].map(|port| bench.guest(port));
    bench.devices.set_kernel_paths(&bench.table(&[1, 1, 1])).unwrap();
    assert!(first.reaches(2) && third.reaches(2));
    // The third guest uses the address of the second one.
    third.netns.run(&format!("ip link set eth0 address {}", mac(2)));
    third.add_neighbours(3);
    assert!(!third.reaches(1));
    assert!(bench.reaches_switch(3), "the frame of a moved address does not reach the switch");
    assert!(!first.reaches(2) && bench.reaches_switch(1), "the address is still in the table");

    // A configured address does not move, and ports with learning off learn no addresses.
    for (fixed, learns) in [(true, true), (false, false)] {
        let mut table = bench.table(&[1, 1, 1]);
        let address = KernelPathAddress { port: PortId(2), is_static: fixed };
        table.addresses.insert((1, mac(2)), address);
        table.ports.insert(PortId(3), KernelPathPort { group: 1, is_learning: learns, mtu: 1500 });
        bench.devices.set_kernel_paths(&KernelPathTable::default()).unwrap();
        bench.devices.set_kernel_paths(&table).unwrap();
        assert!(!third.reaches(1) && first.reaches(2) && second.reaches(1), "{fixed} {learns}");
    }
}

#[test]
fn long_frames_pass_to_the_switch_and_programs_of_others_stay_attached() {
    let bench = Bench::new(2);
    let guest = bench.guest(1);
    bench.devices.set_kernel_paths(&bench.table(&[1, 1])).unwrap();
    // The guests set their own MTU; the configured one applies.
    bench.guests.iter().for_each(|guest| drop(guest.netns.run("ip link set eth0 mtu 9000")));
    let pings = |bytes: u32| {
        let size = format!("-s{}", bytes - 28);
        let arguments =
            ["netns", "exec", guest.netns.name(), "ping", "-qc2", "-i.01", "-W1", &size];
        Command::new("ip").args(arguments).arg("10.3.0.2").output().unwrap().status.success()
    };
    assert!(pings(1500) && !pings(1501) && !pings(9000));
    assert!(bench.reaches_switch(1));
    // Frames that are not permitted still reach the filters of other programs.
    guest.netns.run("ip link set lo up");
    guest.netns.run(
        "tc filter add dev eth0 egress prio 60000 protocol ip u32 match u32 0 0 \
         action mirred egress mirror dev lo",
    );
    assert!(pings(1500));
    assert!(!pings(1501));
    let output = guest.netns.run("tc -s filter show dev eth0 egress");
    assert!(output.contains(" 2 pkt"), "{output}");
}

#[test]
fn frames_sent_directly_to_the_path_device_are_checked_again() {
    let bench = Bench::new(2);
    let guest = bench.guest(1);
    bench.devices.set_kernel_paths(&bench.table(&[1, 1])).unwrap();
    assert!(guest.reaches(2));
    let before = bench.counters(2);
    // Root in the first guest removes the program and sends arbitrary frames on the veth pair: with
    // the other guest's address, and to an unknown one.
    let index = guest.netns.run("cat /sys/class/net/eth0/ifindex");
    let veth = veth::veth_name(index.trim().parse().unwrap());
    guest.netns.run("tc qdisc del dev eth0 clsact");
    guest.netns.run(&format!("ip addr add 10.3.1.1/24 dev {veth}"));
    for (source, to) in [(mac(2), mac(2)), (mac(9), mac(2)), (mac(1), mac(9))] {
        guest.netns.run(&format!("ip link set {veth} address {source}"));
        guest.netns.run(&format!("ip neigh replace 10.3.1.2 lladdr {to} dev {veth}"));
        let arguments = ["netns", "exec", guest.netns.name(), "ping", "-qc2", "-i.01", "-W.1"];
        Command::new("ip").args(arguments).arg("10.3.1.2").output().unwrap();
    }
    assert_eq!(bench.counters(2), before);
}

#[test]
fn the_path_is_removed_with_its_device_and_leftovers_before_the_next() {
    let mut bench = Bench::new(2);
    let table = bench.table(&[1, 1]);
    bench.devices.set_kernel_paths(&table).unwrap();
    let links = |bench: &Bench| bench.guest(1).netns.run("ip -o link").lines().count();
    let filters = |bench: &Bench| {
        bench.guest(1).netns.run("tc filter show dev eth0 egress").contains("suimon")
    };
    // Loopback, the TAP and the device of the path.
    assert_eq!((links(&bench), filters(&bench)), (3, true));

    let live = PortDeviceSpec::Tap(bench.guest(1).spec(false));
    let mut device = bench.guests[0].device.take().unwrap();
    assert!(device.apply_spec(&live).unwrap());
    assert_eq!(device.status().kernel_path, None);
    assert_eq!((links(&bench), filters(&bench)), (2, false));
    assert!(device.apply_spec(&PortDeviceSpec::Tap(bench.guest(1).spec(true))).unwrap());
    assert_eq!((links(&bench), filters(&bench)), (3, true));
    assert_eq!(device.status().kernel_path, Some(KernelPathState::Ready));
    bench.guests[0].device = Some(device);
    bench.devices.set_kernel_paths(&table).unwrap();
    assert!(bench.guest(1).reaches(2));
    let counters = bench.counters(1);

    // As if the process had been killed: the path is not removed.
    bench.guests[0].device = None;
    assert_eq!((links(&bench), filters(&bench)), (2, false));
    assert_eq!((bench.counters(1), counters.sent_frames), (counters, 3));
    let namespace = Namespace::open(Some(bench.guest(1).netns.name())).unwrap();
    let paths = KernelPaths::default();
    for _ in 0..2 {
        std::mem::forget(paths.attach(PortId(9), &namespace, "eth0").unwrap());
        assert_eq!((links(&bench), filters(&bench)), (3, true), "more than one veth pair exists");
    }
    bench.open(1);
    bench.devices.set_kernel_paths(&table).unwrap();
    assert!(bench.guest(1).reaches(2));
    assert_eq!(links(&bench), 3);
    bench.guests[0].device = None;
    std::mem::forget(paths.attach(PortId(9), &namespace, "eth0").unwrap());
    bench.devices.remove_tap("eth0", Some(bench.guest(1).netns.name())).unwrap();
    assert_eq!(links(&bench), 1, "the path is removed with its TAP");
}

#[test]
fn the_path_is_refused_in_the_own_namespace() {
    let own_namespace = Namespace::open(None).unwrap();
    let refused = KernelPaths::default().attach(PortId(1), &own_namespace, "lo").err().unwrap();
    assert_eq!((refused.kind, refused.field), (DeviceErrorKind::Unsupported, "kernel_path"));
    assert!(refused.detail.contains("netns"), "{}", refused.detail);
}

#[test]
fn counters_of_deleted_nics_are_kept_up_to_a_bound() {
    let mut state = State::default();
    for port in 0..3 * FORMER_COUNTERS_MAX as u32 {
        state.release(PortId(port), 0, KernelPathCounters::default());
    }
    assert_eq!(state.former_counters.len(), FORMER_COUNTERS_MAX);
    assert!(state.former_counters.contains_key(&PortId(3 * FORMER_COUNTERS_MAX as u32 - 1)));
}
