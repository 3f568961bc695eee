//! Traffic between light guests: offloads on and off, limits, guards, queues.

use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Daemon, LightGuest, Namespace, Rig, iperf, private_lan};

/// A transfer of one second arrives, and nobody saw a wrong checksum.
fn transfer(from: &LightGuest, to: &LightGuest, what: &str) {
    for (address, family) in [(to.address(), "IPv4"), (to.address_v6(), "IPv6")] {
        for direction in [&[][..], &["--reverse"][..]] {
            let report = iperf::measure(&from.namespace, &address, 1, direction)
                .unwrap_or_else(|error| panic!("{what}, {family}, {direction:?}: {error:#}"));
            assert!(report.bits_per_second > 1e6, "{what}, {family}, {direction:?}: {report:?}");
        }
    }
    for guest in [from, to] {
        let errors = guest.namespace.checksum_errors().unwrap();
        assert_eq!(errors, 0, "{what}: checksum errors in {}", guest.nic);
    }
}

fn counter(status: &Value, key: &str) -> u64 {
    status["counters"][key].as_u64().unwrap_or_else(|| panic!("no counter {key} in {status}"))
}

fn dropped(daemon: &Daemon, nic: &str, side: &str, reason: &str) -> u64 {
    let status = daemon.json(&["nic", "show", nic]).unwrap();
    status["counters"][side]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["reason"] == reason)
        .map(|entry| entry["frames"].as_u64().unwrap())
        .sum()
}

#[test]
fn large_packets_pass_when_both_ends_allow_them() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", "mtu = 9000"), ("b", "mtu = 9000")]).unwrap();
    let [a, b] = guests.as_slice() else { panic!() };
    let big = |from: &Namespace| {
        let words = [
            "ping",
            "-n",
            "-c",
            "3",
            "-i",
            "0.1",
            "-W",
            "1",
            "-M",
            "do",
            "-s",
            "8972",
            &b.address(),
        ];
        from.run_any(&words, Duration::from_secs(6)).unwrap().is_ok()
    };
    assert!(a.namespace.reaches(&b.address()));
    assert!(big(&a.namespace));
    let _server = iperf::serve(&rig, &b.namespace).unwrap();
    transfer(a, b, "MTU 9000");
    // Smaller at the receiver, live: the large packet no longer fits.
    daemon.ok(&["nic", "set", "b", "--mtu", "1500"]).unwrap();
    assert!(!big(&a.namespace));
    assert!(a.namespace.reaches(&b.address()));
    assert!(dropped(&daemon, "a", "rx_dropped", "too_long") > 0);
}

#[test]
fn vlans_keep_guests_apart_and_change_live() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) =
        private_lan(&rig, &[("a", "vlan = 10"), ("b", "vlan = 10"), ("c", "vlan = 20")]).unwrap();
    let [a, b, c] = guests.as_slice() else { panic!() };
    assert!(a.namespace.reaches(&b.address()));
    assert!(a.namespace.is_cut_from(&c.address()).unwrap());
    let plan = daemon.ok(&["nic", "set", "c", "--vlan", "10", "--dry-run"]).unwrap();
    assert!(plan.contains("live"), "{plan}");
    assert!(a.namespace.is_cut_from(&c.address()).unwrap(), "a dry run changes nothing");
    daemon.ok(&["nic", "set", "c", "--vlan", "10"]).unwrap();
    assert!(a.namespace.reaches(&c.address()));
    daemon.ok(&["nic", "set", "c", "--vlan", "20"]).unwrap();
    assert!(a.namespace.is_cut_from(&c.address()).unwrap());
    assert!(a.namespace.reaches(&b.address()));
}

#[test]
fn isolated_guests_reach_only_those_that_are_not() {
    let rig = Rig::new().unwrap();
    let isolated = "isolated = true";
    let (daemon, guests) =
        private_lan(&rig, &[("a", isolated), ("b", isolated), ("c", "")]).unwrap();
    let [a, b, c] = guests.as_slice() else { panic!() };
    assert!(a.namespace.reaches(&c.address()));
    assert!(b.namespace.reaches(&c.address()));
    assert!(a.namespace.is_cut_from(&b.address()).unwrap());
    daemon.ok(&["nic", "set", "b", "--isolated=false"]).unwrap();
    assert!(a.namespace.reaches(&b.address()));
}

#[test]
fn a_guest_cannot_take_another_address_unless_it_may() {
    let rig = Rig::new().unwrap();
    let mac = "mac = \"52:54:00:00:00:01\"";
    let (daemon, guests) = private_lan(&rig, &[("a", mac), ("b", "")]).unwrap();
    let [a, b] = guests.as_slice() else { panic!() };
    assert_eq!(a.mac().unwrap(), "52:54:00:00:00:01");
    assert!(a.namespace.reaches(&b.address()));
    let other = ["ip", "link", "set", LightGuest::DEVICE, "address", "52:54:00:00:00:99"];
    a.namespace.run(&other).unwrap();
    assert!(a.namespace.is_cut_from(&b.address()).unwrap());
    assert!(dropped(&daemon, "a", "rx_dropped", "spoofed_source") > 0);
    // Nobody else can take it either.
    b.namespace
        .run(&["ip", "link", "set", LightGuest::DEVICE, "address", "52:54:00:00:00:01"])
        .unwrap();
    assert!(b.namespace.is_cut_from(&a.address()).unwrap());
}

#[test]
fn a_storm_is_cut_to_its_limit_and_unicast_is_not() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", "storm_limit_fps = 100"), ("b", "")]).unwrap();
    let [a, b] = guests.as_slice() else { panic!() };
    assert!(a.namespace.reaches(&b.address()));
    let before = counter(&daemon.json(&["nic", "show", "b"]).unwrap(), "tx_frames");
    let storm =
        ["ping", "-n", "-q", "-b", "-f", "-l", "3000", "-c", "3000", "-W", "1", "10.77.0.255"];
    a.namespace.run_any(&storm, Duration::from_secs(10)).unwrap();
    let passed = counter(&daemon.json(&["nic", "show", "b"]).unwrap(), "tx_frames") - before;
    let cut = dropped(&daemon, "a", "rx_dropped", "storm_limit");
    assert!(cut > 1000, "{cut} frames were cut");
    assert!(passed < 1600, "{passed} of 3000 frames passed at 100 per second");
    assert!(a.namespace.reaches(&b.address()), "unicast is not limited");
}

#[test]
fn bandwidth_is_held_within_five_percent() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) =
        private_lan(&rig, &[("a", "bandwidth_max_bps = 200_000_000"), ("b", "")]).unwrap();
    let [a, b] = guests.as_slice() else { panic!() };
    let _server = iperf::serve(&rig, &b.namespace).unwrap();
    let rate = |options: &[&str]| {
        iperf::measure(&a.namespace, &b.address(), 6, options).unwrap().bits_per_second
    };
    // The limit counts whole frames, of which TCP's payload is a little less.
    let tcp = rate(&["--omit", "2"]);
    assert!((190e6..=210e6).contains(&tcp), "TCP ran at {tcp} bit/s with a limit of 200 Mbit/s");
    // The limit is on what the guest sends, and it changes live.
    assert!(rate(&["--reverse"]) > 400e6);
    daemon.ok(&["nic", "set", "a", "--bandwidth-max-bps", "50000000"]).unwrap();
    let tcp = rate(&["--omit", "2"]);
    assert!((47.5e6..=52.5e6).contains(&tcp), "TCP ran at {tcp} bit/s with a limit of 50 Mbit/s");
}

/// Frames that left `a` and `b`, on their own or joined, or were meant to go nowhere.
fn carried(daemon: &Daemon) -> u64 {
    let mut frames = 0;
    for nic in ["a", "b"] {
        let status = daemon.json(&["nic", "show", nic]).unwrap();
        frames += counter(&status, "tx_frames");
        frames += counter(&status, "software_coalesced_segments");
        frames -= counter(&status, "software_coalesced_units");
        for entry in status["counters"]["rx_dropped"].as_array().unwrap() {
            frames += entry["frames"].as_u64().unwrap();
        }
    }
    frames
}

#[test]
fn a_queue_moves_to_another_processor_under_load() {
    let rig = Rig::new().unwrap();
    let a = LightGuest::new(&rig, "a", 1).unwrap();
    let b = LightGuest::new(&rig, "b", 2).unwrap();
    let host = format!(
        "[host]\nprocessors = [0, 1]\n[[switch]]\nname = \"lan\"\nkind = \"private\"\n{}{}",
        a.nic_toml("lan", ""),
        b.nic_toml("lan", "")
    );
    let daemon = Daemon::start(&rig, &host).unwrap();
    for guest in [&a, &b] {
        guest.bring_up().unwrap();
    }
    let _server = iperf::serve(&rig, &b.namespace).unwrap();
    let stream = std::thread::scope(|scope| {
        let stream = scope.spawn(|| iperf::measure(&a.namespace, &b.address(), 6, &[]));
        for round in 0..40u32 {
            for queue in ["a/tx/0", "a/rx/0", "b/tx/0", "b/rx/0"] {
                let to = ((round + 1) % 2).to_string();
                daemon.ok(&["queue", "move", queue, "--to", &to]).unwrap();
            }
        }
        stream.join().unwrap().unwrap()
    });
    assert!(stream.bits_per_second > 1e8, "{stream:?}");
    let queues = daemon.json(&["queue", "list"]).unwrap();
    for queue in queues.as_array().unwrap() {
        assert!(queue["moves"].as_u64().unwrap() >= 30, "{queue}");
    }
    // Nothing is lost and nothing is reordered. (The sender may still send a
    // segment again that only came late: the machine is busy.)
    for queue in queues.as_array().unwrap() {
        assert_eq!(queue["full"], 0, "{queue}");
    }
    let count = |nic: &str, key: &str| counter(&daemon.json(&["nic", "show", nic]).unwrap(), key);
    assert_eq!(count("a", "rx_frames") + count("b", "rx_frames"), carried(&daemon), "frames lost");
    assert_eq!(b.namespace.snmp("TcpExt", "TCPOFOQueue").unwrap(), 0, "segments reordered");
    assert_eq!(b.namespace.checksum_errors().unwrap(), 0);
}
