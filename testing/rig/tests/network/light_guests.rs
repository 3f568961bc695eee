//! Traffic between namespace guests: offloads enabled and disabled, limits, port security, queues.

use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_rig::{Daemon, Namespace, NamespaceGuest, Rig, iperf, private_lan, wait_until};

/// Deadline of every condition and command. The machine may be loaded.
const LIMIT: Duration = Duration::from_secs(120);

/// Asserts that a transfer of one second delivers data, and that no kernel counted a wrong
/// checksum.
fn transfer(from: &NamespaceGuest, to: &NamespaceGuest, description: &str) {
    for (address, family) in [(to.address(), "IPv4"), (to.address_v6(), "IPv6")] {
        for direction in [&[][..], &["--reverse"][..]] {
            let report =
                iperf::measure(&from.namespace, &address, 1, direction).unwrap_or_else(|error| {
                    panic!("{description}, {family}, {direction:?}: {error:#}")
                });
            assert!(
                report.bits_per_second > 0.0,
                "{description}, {family}, {direction:?}: {report:?}"
            );
        }
    }
    for guest in [from, to] {
        let errors = guest.namespace.checksum_errors().unwrap();
        assert_eq!(errors, 0, "{description}: checksum errors in {}", guest.nic);
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

/// Waits until the switch counts frames of a NIC dropped for this reason. A missing reply alone
/// does not show that the switch has processed the requests.
fn wait_rx_dropped(daemon: &Daemon, nic: &str, reason: &str) {
    wait_until(&format!("frames of {nic} dropped: {reason}"), LIMIT, || {
        Ok(dropped(daemon, nic, "rx_dropped", reason) > 0)
    })
    .unwrap();
}

#[test]
fn large_packets_pass_when_both_ends_allow_them() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", "mtu = 9000"), ("b", "mtu = 9000")]).unwrap();
    let [a, b] = guests.as_slice() else { panic!() };
    let big = |source: &Namespace| {
        let arguments = [
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
        source.run_any(&arguments, LIMIT).unwrap().is_ok()
    };
    assert!(a.namespace.reaches(&b.address()));
    assert!(big(&a.namespace));
    let _server = iperf::serve(&rig, &b.namespace).unwrap();
    transfer(a, b, "MTU 9000");
    // The receiver's MTU is reduced live: the large packet no longer fits.
    daemon.ok(&["nic", "set", "b", "--mtu", "1500"]).unwrap();
    assert!(!big(&a.namespace));
    assert!(a.namespace.reaches(&b.address()));
    wait_rx_dropped(&daemon, "a", "too_long");
}

#[test]
fn vlans_keep_guests_apart_and_change_live() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) =
        private_lan(&rig, &[("a", "vlan = 10"), ("b", "vlan = 10"), ("c", "vlan = 20")]).unwrap();
    let [a, b, c] = guests.as_slice() else { panic!() };
    assert!(a.namespace.reaches(&b.address()));
    assert!(a.namespace.cannot_reach(&c.address()).unwrap());
    let plan = daemon.ok(&["nic", "set", "c", "--vlan", "10", "--dry-run"]).unwrap();
    assert!(plan.contains("live"), "{plan}");
    assert!(a.namespace.cannot_reach(&c.address()).unwrap(), "a dry run changes nothing");
    daemon.ok(&["nic", "set", "c", "--vlan", "10"]).unwrap();
    assert!(a.namespace.reaches(&c.address()));
    daemon.ok(&["nic", "set", "c", "--vlan", "20"]).unwrap();
    assert!(a.namespace.cannot_reach(&c.address()).unwrap());
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
    assert!(a.namespace.cannot_reach(&b.address()).unwrap());
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
    let other = ["ip", "link", "set", NamespaceGuest::DEVICE, "address", "52:54:00:00:00:99"];
    a.namespace.run(&other).unwrap();
    assert!(a.namespace.cannot_reach(&b.address()).unwrap());
    wait_rx_dropped(&daemon, "a", "spoofed_source");
    // Another guest cannot use the configured address either.
    b.namespace
        .run(&["ip", "link", "set", NamespaceGuest::DEVICE, "address", "52:54:00:00:00:01"])
        .unwrap();
    assert!(b.namespace.cannot_reach(&a.address()).unwrap());
}

#[test]
fn a_storm_is_cut_to_its_limit_and_unicast_is_not() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", "storm_limit_fps = 100"), ("b", "")]).unwrap();
    let [a, b] = guests.as_slice() else { panic!() };
    assert!(a.namespace.reaches(&b.address()));
    // If the switch is delayed, the kernel drops frames of the storm before the switch receives
    // them.
    let frames = || counter(&daemon.json(&["nic", "show", "b"]).unwrap(), "tx_frames");
    let (started, before) = (Instant::now(), frames());
    let storm =
        ["ping", "-n", "-q", "-b", "-f", "-l", "3000", "-c", "3000", "-W", "1", "10.77.0.255"];
    let mut cut = 0;
    wait_until("a thousand dropped frames", LIMIT, || {
        a.namespace.run_any(&storm, LIMIT)?;
        cut = dropped(&daemon, "a", "rx_dropped", "storm_limit");
        Ok(cut > 1000)
    })
    .unwrap();
    let passed = frames() - before;
    // 100 frames per second, a burst of 20, and up to 100 frames that the guests' kernels send on
    // their own.
    let max_frames = started.elapsed().as_millis() as u64 / 10 + 20 + 100;
    println!("{cut} frames were dropped, {passed} forwarded in {:?}", started.elapsed());
    assert!(passed <= max_frames, "{passed} frames passed in {:?}", started.elapsed());
    assert!(a.namespace.reaches(&b.address()), "unicast is not limited");
}

/// Returns the bits of a guest's frames that the switch accepted during `stream`, and the maximum
/// that the limit permits in this time: the bucket holds 64 KiB, and one batch may exceed it. The
/// time includes both readings of the counter, so load on the machine can only increase the bound.
fn sent_and_allowed(daemon: &Daemon, stream: impl FnOnce(), limit_bps: u64) -> (u64, u64) {
    const BURST_BYTES: u64 = (64 << 10) + 32 * (64 << 10);
    let read = || counter(&daemon.json(&["nic", "show", "a"]).unwrap(), "rx_bytes");
    let (started, before) = (Instant::now(), read());
    stream();
    let sent_bits = 8 * (read() - before);
    let micros = started.elapsed().as_micros() as u64;
    (sent_bits, limit_bps * micros / 1_000_000 + 8 * BURST_BYTES)
}

/// That a limit is reached within 5 % is tested in virtual time
/// (`testing/processors/tests/integration/bandwidth.rs`).
#[test]
fn bandwidth_is_limited_one_way_and_the_limit_changes_live() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) =
        private_lan(&rig, &[("a", "bandwidth_max_bps = 200_000_000"), ("b", "")]).unwrap();
    let [a, b] = guests.as_slice() else { panic!() };
    let _server = iperf::serve(&rig, &b.namespace).unwrap();
    let run = |options: &[&str]| iperf::measure(&a.namespace, &b.address(), 2, options).unwrap();
    for limit in [200_000_000, 20_000_000] {
        let set = limit.to_string();
        daemon.ok(&["nic", "set", "a", "--bandwidth-max-bps", &set]).unwrap();
        let (sent_bits, allowed) = sent_and_allowed(&daemon, || drop(run(&[])), limit);
        println!("{sent_bits} bits were sent, {allowed} allowed at {limit} a second");
        assert!(
            0 < sent_bits && sent_bits <= allowed,
            "{sent_bits} of {allowed} bits at {limit} a second"
        );
    }
    // The limit applies to what the guest sends. It receives many times as much, even on a machine
    // that gives this test a hundredth of a CPU.
    let limit = 2_000_000;
    daemon.ok(&["nic", "set", "a", "--bandwidth-max-bps", "2000000"]).unwrap();
    let started = Instant::now();
    let report = run(&["--reverse"]);
    let received = report.json["end"]["sum_received"]["bytes"].as_u64().unwrap() * 8;
    let allowed = limit * started.elapsed().as_millis() as u64 / 1000;
    assert!(received > 2 * allowed, "{received} bits in {:?}", started.elapsed());
}

/// Returns the number of frames of `a` and `b` that were delivered, individually or coalesced, or
/// dropped at ingress.
fn carried_frames(daemon: &Daemon) -> u64 {
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

fn a_queue_moves_to_another_worker_under_load() {
    let rig = Rig::new().unwrap();
    let a = NamespaceGuest::new(&rig, "a", 1).unwrap();
    let b = NamespaceGuest::new(&rig, "b", 2).unwrap();
    let host = format!(
        "[host]\nworker_cpus = [0, 1]\n[[switch]]\nname = \"lan\"\nkind = \"private\"\n{}{}",
        a.nic_toml("lan", ""),
        b.nic_toml("lan", "")
    );
    let daemon = Daemon::start(&rig, &host).unwrap();
    // Frames that a guest sends before the other NIC exists are dropped.
    for guest in [&a, &b] {
        daemon.wait_up("nic", &guest.nic).unwrap();
    }
    for guest in [&a, &b] {
        guest.bring_up().unwrap();
    }
    let _server = iperf::serve(&rig, &b.namespace).unwrap();
    // With a small window, a delayed worker does not make another one drop frames, of which 1024
    // may be in flight.
    let window = ["--window", "64K"];
    let mut stream = iperf::Client::begin(&rig, &a.namespace, &b.address(), 1, &window).unwrap();
    let down = || ["a", "b"].map(|nic| dropped(&daemon, nic, "tx_dropped", "egress_down"));
    let before = down();
    for round in 0..40u32 {
        for queue in ["a/tx/0", "a/rx/0", "b/tx/0", "b/rx/0"] {
            let target = ((round + 1) % 2).to_string();
            daemon.ok(&["queue", "move", queue, "--to", &target]).unwrap();
        }
    }
    stream.wait_flow("the stream at its end").unwrap();
    println!("{} bit/s", stream.end().unwrap().bits_per_second);
    assert_eq!(down(), before, "frames lost while a queue was moved");
    let queues = daemon.json(&["queue", "list"]).unwrap();
    for queue in queues.as_array().unwrap() {
        assert!(queue["moves"].as_u64().unwrap() >= 30, "{queue}");
    }
    // No frame is lost or reordered. The sender may retransmit a segment that was only delayed by
    // load.
    for queue in queues.as_array().unwrap() {
        assert_eq!(queue["full"], 0, "{queue}");
    }
    let count = |nic: &str, key: &str| counter(&daemon.json(&["nic", "show", nic]).unwrap(), key);
    let mut counts = (0, 0);
    wait_until("as many frames carried as received", LIMIT, || {
        // The connection's last frames may still be in flight.
        counts = (count("a", "rx_frames") + count("b", "rx_frames"), carried_frames(&daemon));
        Ok(counts.0 == counts.1 + before.iter().sum::<u64>())
    })
    .unwrap_or_else(|error| {
        let nics = ["a", "b"].map(|nic| daemon.json(&["nic", "show", nic]).unwrap());
        panic!("{error:#}: {counts:?} frames received and carried: {nics:#?} {queues:#}")
    });
    assert_eq!(b.namespace.snmp("TcpExt", "TCPOFOQueue").unwrap(), 0, "segments reordered");
    assert_eq!(b.namespace.checksum_errors().unwrap(), 0);
}

mod full {
    #[test]
    fn a_queue_moves_to_another_worker_under_load() {
        super::a_queue_moves_to_another_worker_under_load();
    }
}
