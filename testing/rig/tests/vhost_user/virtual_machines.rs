//! Real VMs on the switch: QEMU with Debian's kernel, and DPDK's testpmd.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use suimon_rig::{
    Daemon, Guest, GuestNic, GuestSpec, NamespaceGuest, Rig, Testpmd, TestpmdSpec, iperf,
    wait_for_value, wait_until,
};

const VM_MAC: &str = "52:54:00:aa:00:01";
/// Deadline of every condition and command. The machine may be loaded.
const LIMIT: Duration = Duration::from_secs(240);

fn vm_toml(name: &str, socket: &str, keys: &str) -> String {
    format!(
        "[[nic]]\nname = \"{name}\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
         socket = \"{socket}\"\n{keys}\n"
    )
}

const LAN: &str = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n";

fn spec(name: &str, nics: Vec<GuestNic>) -> GuestSpec {
    GuestSpec { name: name.to_owned(), nics, cpus: 1, ..GuestSpec::default() }
}

fn macs() -> [String; 2] {
    ["02:00:00:00:00:01", "02:00:00:00:00:02"].map(str::to_owned)
}

#[test]
fn a_vm_exchanges_pings_tcp_and_large_packets_with_a_light_guest() {
    let rig = Rig::new().unwrap();
    let light = NamespaceGuest::new(&rig, "light", 1).unwrap();
    let socket = rig.path("vm.sock");
    let host = format!(
        "{LAN}{}{}",
        light.nic_toml("lan", "mtu = 9000"),
        vm_toml("vm", &socket, &format!("mac = \"{VM_MAC}\"\nmtu = 9000"))
    );
    let daemon = Daemon::start(&rig, &host).unwrap();
    light.bring_up().unwrap();
    let mut vm = Guest::start(&rig, &spec("vm", vec![GuestNic::new(&socket, VM_MAC)])).unwrap();
    vm.address("eth0", "10.77.0.9/24").unwrap();
    daemon.wait_up("nic", "vm").unwrap();
    assert!(vm.reaches(&light.address()).unwrap());
    assert!(light.namespace.reaches("10.77.0.9"));

    // The guest has the offloads that the switch offers.
    let features = vm.run("ethtool -k eth0").unwrap();
    for feature in ["tx-checksumming: on", "tcp-segmentation-offload: on", "rx-checksumming: on"] {
        assert!(features.contains(feature), "{feature}: {features}");
    }
    // TCP in both directions, with and without segmentation by the switch.
    let _server = iperf::serve(&rig, &light.namespace).unwrap();
    for switches in ["tso on gso on gro on", "tso off gso off gro off", "tx off", "tx on tso on"] {
        vm.run(&format!("ethtool -K eth0 {switches}")).unwrap();
        for direction in ["", "--reverse"] {
            let command =
                format!("iperf3 --client {} --time 2 --json {direction}", light.address());
            let output = vm.run_any(&command, LIMIT).unwrap();
            let report = iperf::report(&output.stdout).unwrap();
            assert!(report.bits_per_second > 0.0, "{switches} {direction}: {report:?}");
        }
    }
    assert_eq!(light.namespace.checksum_errors().unwrap(), 0);
    let snmp = vm.run("cat /proc/net/snmp").unwrap();
    let tcp: Vec<&str> = snmp.lines().filter(|line| line.starts_with("Tcp: ")).collect();
    assert!(tcp[1].ends_with(" 0"), "checksum errors in the VM: {}", tcp[1]);

    // MTU 9000 in both directions, with one packet each.
    vm.run("ip link set eth0 mtu 9000").unwrap();
    let big = ["ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", "8972", "10.77.0.9"];
    wait_until("a large ping to the VM", LIMIT, || {
        Ok(light.namespace.run_any(&big, LIMIT)?.is_ok())
    })
    .unwrap();
    let big = format!("ping -c 1 -W 2 -s 8972 {}", light.address());
    wait_until("a large ping from the VM", LIMIT, || Ok(vm.run_any(&big, LIMIT)?.is_ok())).unwrap();
}

fn a_vlan_changes_live_without_effect_on_others() {
    let rig = Rig::new().unwrap();
    let light = NamespaceGuest::new(&rig, "light", 1).unwrap();
    let other = NamespaceGuest::new(&rig, "other", 2).unwrap();
    let socket = rig.path("vm.sock");
    let host = format!(
        "{LAN}{}{}{}",
        light.nic_toml("lan", "vlan = 10"),
        other.nic_toml("lan", "vlan = 10"),
        vm_toml("vm", &socket, "vlan = 20")
    );
    let daemon = Daemon::start(&rig, &host).unwrap();
    light.bring_up().unwrap();
    other.bring_up().unwrap();
    let mut vm = Guest::start(&rig, &spec("vm", vec![GuestNic::new(&socket, VM_MAC)])).unwrap();
    vm.address("eth0", "10.77.0.9/24").unwrap();
    assert!(vm.cannot_reach(&light.address()).unwrap());

    let _server = iperf::serve(&rig, &other.namespace).unwrap();
    let mut stream =
        iperf::Client::begin(&rig, &light.namespace, &other.address(), 1, &iperf::BESIDE).unwrap();
    daemon.ok(&["nic", "set", "vm", "--vlan", "10"]).unwrap();
    assert!(vm.reaches(&light.address()).unwrap());
    stream.wait_flow("the others' stream beside a VLAN").unwrap();
    // A trunk port with VLAN 10 tagged and VLAN 20 native.
    daemon.ok(&["nic", "set", "vm", "--vlan", "20", "--trunk", "10"]).unwrap();
    vm.run("ip addr flush dev eth0").unwrap();
    vm.run("ip link add link eth0 name eth0.10 type vlan id 10 && ip link set eth0.10 up").unwrap();
    vm.run("ip addr add 10.77.0.9/24 dev eth0.10").unwrap();
    assert!(vm.reaches(&light.address()).unwrap(), "tagged on the trunk");
    stream.wait_flow("the others' stream beside a trunk").unwrap();
    println!("others: {} bit/s", stream.end().unwrap().bits_per_second);
    // The guest's driver did not see a device restart.
    let log = vm.run("dmesg | grep -c 'virtio_net.*eth0' || true").unwrap();
    assert!(log.trim().parse::<u32>().unwrap_or(0) <= 1, "{log}");
}

fn a_vm_with_several_queues_uses_them() {
    let rig = Rig::new().unwrap();
    let light = NamespaceGuest::new(&rig, "light", 1).unwrap();
    let socket = rig.path("vm.sock");
    let host =
        format!("{LAN}{}{}", light.nic_toml("lan", ""), vm_toml("vm", &socket, "queues = 2"));
    let daemon = Daemon::start(&rig, &host).unwrap();
    light.bring_up().unwrap();
    let nic = GuestNic { queues: 2, ..GuestNic::new(&socket, VM_MAC) };
    let mut vm = Guest::start(
        &rig,
        &GuestSpec { name: "vm".into(), nics: vec![nic], cpus: 2, ..GuestSpec::default() },
    )
    .unwrap();
    vm.run("ethtool -L eth0 combined 2").unwrap();
    vm.address("eth0", "10.77.0.9/24").unwrap();
    let reached = vm.reaches(&light.address()).unwrap();
    let queues = daemon.ok(&["queue", "list"]).unwrap();
    assert!(
        reached,
        "{queues}\n{}",
        vm.run("cat /proc/interrupts /proc/net/dev; dmesg | tail -5").unwrap()
    );
    wait_until("both queue pairs", LIMIT, || {
        Ok(daemon.json(&["nic", "show", "vm"])?["queue_pairs"] == 2)
    })
    .unwrap();
    let _server = iperf::serve(&rig, &light.namespace).unwrap();
    let command = format!("iperf3 --client {} --time 2 --parallel 8 --json", light.address());
    let output = vm.run_any(&command, LIMIT).unwrap();
    assert!(iperf::report(&output.stdout).unwrap().bits_per_second > 0.0);
}

#[test]
fn a_vm_whose_qemu_listens_is_connected_to() {
    let rig = Rig::new().unwrap();
    let light = NamespaceGuest::new(&rig, "light", 1).unwrap();
    let socket = rig.path("vm.sock");
    let host = format!(
        "{LAN}{}{}",
        light.nic_toml("lan", ""),
        vm_toml("vm", &socket, "mode = \"client\"")
    );
    let _daemon = Daemon::start(&rig, &host).unwrap();
    light.bring_up().unwrap();
    let nic = GuestNic { listens: true, ..GuestNic::new(&socket, VM_MAC) };
    let mut vm = Guest::start(&rig, &spec("vm", vec![nic])).unwrap();
    vm.address("eth0", "10.77.0.9/24").unwrap();
    assert!(vm.reaches(&light.address()).unwrap());
}

#[test]
fn a_vm_finds_its_way_back_after_the_daemon_was_killed() {
    let rig = Rig::new().unwrap();
    let light = NamespaceGuest::new(&rig, "light", 1).unwrap();
    let socket = rig.path("vm.sock");
    let host = format!("{LAN}{}{}", light.nic_toml("lan", ""), vm_toml("vm", &socket, ""));
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    light.bring_up().unwrap();
    let mut vm = Guest::start(&rig, &spec("vm", vec![GuestNic::new(&socket, VM_MAC)])).unwrap();
    vm.address("eth0", "10.77.0.9/24").unwrap();
    assert!(vm.reaches(&light.address()).unwrap());
    daemon.kill();
    daemon.restart(&rig).unwrap();
    daemon.wait_up("nic", "vm").unwrap();
    assert!(vm.reaches(&light.address()).unwrap());
}

#[test]
fn testpmd_s_two_vms_exchange_frames_both_ways() {
    for listens in [false, true] {
        let rig = Rig::new().unwrap();
        let sockets = [rig.path("vh0.sock"), rig.path("vh1.sock")];
        let mode = if listens { "mode = \"client\"" } else { "mode = \"server\"" };
        let host = format!(
            "[host]\nworker_cpus = [0]\n{LAN}{}{}",
            vm_toml("left", &sockets[0], mode),
            vm_toml("right", &sockets[1], mode)
        );
        let daemon = Daemon::start(&rig, &host).unwrap();
        let mut spec = TestpmdSpec::new(sockets, macs());
        spec.listens = listens;
        let mut testpmd = Testpmd::start(&rig, &spec).unwrap();
        testpmd.start_circulating().unwrap();
        testpmd.wait_received(1000).unwrap();
        // The switch has received as many frames as the guest counted as sent.
        testpmd.ask("stop").unwrap();
        let stats = testpmd.stats().unwrap();
        for (name, port) in ["left", "right"].iter().zip(stats) {
            let counters = daemon.json(&["nic", "show", name]).unwrap()["counters"].clone();
            let received_frames = counters["rx_frames"].as_u64().unwrap();
            assert!(received_frames.abs_diff(port.tx_packets) <= 2048, "{port:?} {counters}");
        }
    }
}

#[test]
fn testpmd_s_vms_are_kept_apart_by_vlans_until_they_share_one() {
    let rig = Rig::new().unwrap();
    let sockets = [rig.path("vh0.sock"), rig.path("vh1.sock")];
    let host = format!(
        "[host]\nworker_cpus = [0]\n{LAN}{}{}",
        vm_toml("left", &sockets[0], "vlan = 10"),
        vm_toml("right", &sockets[1], "vlan = 20")
    );
    let daemon = Daemon::start(&rig, &host).unwrap();
    let mut testpmd = Testpmd::start(&rig, &TestpmdSpec::new(sockets, macs())).unwrap();
    testpmd.start_circulating().unwrap();
    wait_until("frames sent", LIMIT, || {
        Ok(testpmd.stats()?.iter().all(|port| port.tx_packets > 0))
    })
    .unwrap();
    assert!(testpmd.stats().unwrap().iter().all(|port| port.rx_packets == 0));
    daemon.ok(&["nic", "set", "right", "--vlan", "10"]).unwrap();
    testpmd.ask("stop").unwrap();
    testpmd.start_circulating().unwrap();
    testpmd.wait_received(1000).unwrap();
    daemon.ok(&["nic", "set", "right", "--vlan", "20"]).unwrap();
    // Frames in flight arrive, and then no more.
    let mut before = testpmd.stats().unwrap();
    wait_until("the last frame", LIMIT, || {
        let received = testpmd.rate(Duration::from_secs(1))?;
        let after = testpmd.stats()?;
        println!("{received} frames a second: {before:?}, then {after:?}");
        before = after;
        Ok(received == 0.0)
    })
    .unwrap();
    assert!(testpmd.rate(Duration::from_secs(1)).unwrap() == 0.0, "{before:?}");
}

/// Returns messages that no front-end sends. The header is request, flags, size (QEMU's
/// `docs/interop/vhost-user.rst`, "Message Specification").
fn invalid_messages() -> Vec<Vec<u8>> {
    let message = |request: u32, flags: u32, size: u32, body: &[u8]| {
        let mut bytes: Vec<u8> =
            [request, flags, size].iter().flat_map(|field| field.to_le_bytes()).collect();
        bytes.extend_from_slice(body);
        bytes
    };
    vec![
        vec![0xff; 4096],
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        message(1, 1, u32::MAX, &[]),
        message(9999, 1, 0, &[]),
        message(5, 1, 8, &[0xff; 8]),
        message(5, 1, 40, &[0; 40]),
        message(8, 1, 8, &[0xff; 8]),
        message(9, 1, 40, &[0xee; 40]),
        message(12, 1, 8, &[0; 8]),
        message(2, 0x77, 8, &[0xff; 8]),
        message(18, 1, 8, &[0xff; 8]),
        message(1, 1, 8, &[1, 2, 3]),
    ]
}

#[test]
fn a_front_end_that_sends_invalid_messages_affects_no_other_vm() {
    let rig = Rig::new().unwrap();
    let (a, b) =
        (NamespaceGuest::new(&rig, "a", 1).unwrap(), NamespaceGuest::new(&rig, "b", 2).unwrap());
    let socket = rig.path("vm.sock");
    let host = format!(
        "{LAN}{}{}{}",
        a.nic_toml("lan", ""),
        b.nic_toml("lan", ""),
        vm_toml("vm", &socket, "")
    );
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    a.bring_up().unwrap();
    b.bring_up().unwrap();
    let _server = iperf::serve(&rig, &b.namespace).unwrap();
    let mut stream =
        iperf::Client::begin(&rig, &a.namespace, &b.address(), 1, &iperf::BESIDE).unwrap();
    for (index, bytes) in invalid_messages().iter().cycle().take(60).enumerate() {
        let mut front_end = UnixStream::connect(&socket).unwrap();
        front_end.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let _ = front_end.write_all(bytes);
        let _ = front_end.read(&mut [0; 256]);
        if index % 10 == 9 {
            stream.wait_flow("the others' stream beside invalid messages").unwrap();
        }
    }
    println!("others: {} bit/s", stream.end().unwrap().bits_per_second);
    daemon.process().check_running().unwrap();
    // The event is recorded after the front-end was disconnected.
    let violation = wait_for_value("event of a violation", LIMIT, || {
        let events = daemon.json(&["event", "list"])?;
        let mut events = events.as_array().into_iter().flatten();
        Ok(events.find(|event| event["id"] == 3007).cloned())
    })
    .unwrap();
    assert_eq!(violation["subject"], "nic/vm");
    // A valid VM is served afterwards.
    let mut vm = Guest::start(&rig, &spec("vm", vec![GuestNic::new(&socket, VM_MAC)])).unwrap();
    vm.address("eth0", "10.77.0.9/24").unwrap();
    assert!(vm.reaches(&a.address()).unwrap());
}

mod full {
    #[test]
    fn a_vm_with_several_queues_uses_them() {
        super::a_vm_with_several_queues_uses_them();
    }

    #[test]
    fn a_vlan_changes_live_without_effect_on_others() {
        super::a_vlan_changes_live_without_effect_on_others();
    }
}
