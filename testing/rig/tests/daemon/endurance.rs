//! Persistence of the configuration and of TAP devices across crashes, cleanup at the daemon's end,
//! and the CPU usage of an idle host.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use suimon_rig::{
    Daemon, NamespaceGuest, Rig, iperf, private_lan, program, run, run_any, summarize_capture,
    wait_until,
};

const LAN: &str = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n";

/// Deadline of conditions and commands that take less than a second on an idle machine.
const LIMIT: Duration = Duration::from_secs(90);

/// Highest VLAN ID (IEEE 802.1Q, table 9-2).
const VLANS: u32 = 4094;

#[test]
fn desired_state_survives_being_killed_at_any_moment() {
    kill_repeatedly(8);
}

mod full {
    #[test]
    fn desired_state_survives_being_killed_at_any_moment() {
        super::kill_repeatedly(48);
    }
}

fn kill_repeatedly(rounds: u32) {
    let rig = Rig::new().unwrap();
    let guest = NamespaceGuest::new(&rig, "a", 1).unwrap();
    let host = format!("{LAN}{}", guest.nic_toml("lan", ""));
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    guest.bring_up().unwrap();
    let cli = program("suimon").unwrap();
    let mut acknowledged = 0u32;
    for round in 0..rounds {
        // The daemon is killed during a change: each round after a different number of changes and
        // a different delay.
        let (socket, cli) = (daemon.socket().to_owned(), cli.clone());
        let changed = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&changed);
        let changes = thread::spawn(move || {
            let mut last = None;
            for step in 1..=400u32 {
                let vlan = ((round * 100 + step % 100) % VLANS + 1).to_string();
                let arguments =
                    [cli.as_str(), "--socket", &socket, "nic", "set", "a", "--vlan", &vlan];
                if !run_any(&arguments, LIMIT).is_ok_and(|output| output.is_ok()) {
                    return (last, vlan);
                }
                last = Some(vlan);
                counted.fetch_add(1, Ordering::Relaxed);
            }
            (last.clone(), last.unwrap_or_default())
        });
        let changes_first = round % 4;
        wait_until("changes", LIMIT, || Ok(changed.load(Ordering::Relaxed) >= changes_first))
            .unwrap();
        thread::sleep(Duration::from_millis(u64::from(round) * 7 % 41));
        daemon.kill();
        let (last, attempted) = changes.join().unwrap();
        daemon.restart(&rig).unwrap();
        let vlan = daemon.json(&["nic", "show", "a"]).unwrap()["config"]["vlan"].to_string();
        // The VLAN is that of the last acknowledged change or of the one in progress. A round
        // without an acknowledged change cannot check this.
        match last {
            Some(last) => {
                acknowledged += 1;
                assert!(vlan == last || vlan == attempted, "{vlan}, not {last} or {attempted}");
            }
            None => assert_ne!(vlan, ""),
        }
        daemon.wait_up("nic", "a").unwrap();
    }
    assert!(
        acknowledged >= rounds / 2,
        "only {acknowledged} of {rounds} rounds had an acknowledged change"
    );
    // No sequence is assigned twice; each kill skips the rest of a reserved block.
    let events = daemon.json(&["event", "list", "--limit", "10000"]).unwrap();
    let sequences: Vec<u64> =
        events.as_array().unwrap().iter().map(|e| e["sequence"].as_u64().unwrap()).collect();
    let steps: Vec<u64> = sequences.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    assert!(steps.iter().all(|step| (1..=10_001).contains(step)), "{sequences:?}");
    let gaps: u32 = steps.iter().map(|step| u32::from(*step > 1)).sum();
    assert!(gaps <= rounds, "{gaps} gaps after {rounds} kills: {sequences:?}");
}

#[test]
fn a_new_daemon_adopts_the_taps_of_a_killed_one() {
    let rig = Rig::new().unwrap();
    let (mut daemon, guests) = private_lan(&rig, &[("a", ""), ("b", "")]).unwrap();
    let [a, b] = guests.as_slice() else { panic!() };
    assert!(a.namespace.reaches(&b.address()));
    let index = |guest: &NamespaceGuest| {
        guest.namespace.run(&["cat", "/sys/class/net/eth0/ifindex"]).unwrap()
    };
    let before = (index(a), index(b));
    daemon.kill();
    daemon.restart(&rig).unwrap();
    assert!(a.namespace.reaches(&b.address()), "the guests keep devices and addresses");
    assert_eq!((index(a), index(b)), before);
    // Deleting a NIC deletes the TAP device that was created for it.
    daemon.ok(&["nic", "delete", "a"]).unwrap();
    let link_output = a.namespace.run_any(&["ip", "link", "show", "eth0"], LIMIT).unwrap();
    assert!(!link_output.is_ok(), "the TAP device still exists");
}

#[test]
fn a_tap_of_another_program_outlives_its_nic() {
    let rig = Rig::new().unwrap();
    let guest = NamespaceGuest::new(&rig, "a", 1).unwrap();
    guest.namespace.run(&["ip", "tuntap", "add", "dev", "eth0", "mode", "tap"]).unwrap();
    let host = format!("{LAN}{}", guest.nic_toml("lan", ""));
    let daemon = Daemon::start(&rig, &host).unwrap();
    daemon.wait_up("nic", "a").unwrap();
    daemon.ok(&["nic", "delete", "a"]).unwrap();
    guest.namespace.run(&["ip", "link", "show", "eth0"]).unwrap();
}

#[test]
fn a_deleted_tap_is_reported_and_made_again() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", ""), ("b", "")]).unwrap();
    guests[0].namespace.run(&["ip", "link", "delete", "eth0"]).unwrap();
    wait_until("event of the failure", LIMIT, || {
        let events = daemon.json(&["event", "list"])?;
        Ok(events.as_array().is_some_and(|events| {
            events.iter().any(|e| e["id"] == 3008 && e["subject"] == "nic/a")
        }))
    })
    .unwrap();
    daemon.wait_up("nic", "a").unwrap();
    guests[0].bring_up().unwrap();
    assert!(guests[0].namespace.reaches(&guests[1].address()));
}

#[test]
fn a_nic_whose_namespace_is_deleted_fails_and_comes_back_with_it() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", ""), ("b", "")]).unwrap();
    let name = guests[0].namespace.name();
    run(&["ip", "netns", "delete", name]).unwrap();
    wait_until("event of the failure", LIMIT, || {
        let events = daemon.json(&["event", "list"])?;
        let is_lost = |event: &serde_json::Value| {
            event["id"] == 3008
                && event["subject"] == "nic/a"
                && event["text"].as_str().is_some_and(|text| text.contains(name))
        };
        Ok(events.as_array().is_some_and(|events| events.iter().any(is_lost)))
    })
    .unwrap();
    let nic = daemon.json(&["nic", "show", "a"]).unwrap();
    assert_eq!(nic["condition"]["health"], "failed", "{nic}");
    assert_eq!(daemon.json(&["nic", "show", "b"]).unwrap()["condition"]["health"], "up");
    run(&["ip", "netns", "add", name]).unwrap();
    daemon.wait_up("nic", "a").unwrap();
    guests[0].bring_up().unwrap();
    assert!(guests[0].namespace.reaches(&guests[1].address()));
    // The event is recorded after the status changes.
    wait_until("event of the recovery", LIMIT, || {
        Ok(daemon.ok(&["event", "list"])?.contains("nic/a: The NIC is in service again"))
    })
    .unwrap();
}

#[test]
fn a_stopped_daemon_leaves_no_socket_and_no_process() {
    let rig = Rig::new().unwrap();
    let socket = rig.path("vm.sock");
    let host = format!(
        "{LAN}[[nic]]\nname = \"vm\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\nsocket = \"{socket}\"\n"
    );
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    assert!(Path::new(&socket).exists());
    let started = Instant::now();
    let status = daemon.stop().unwrap();
    assert!(status.success(), "{status}");
    println!("it took {:?} to stop", started.elapsed());
    assert!(!Path::new(&socket).exists());
    assert!(!Path::new(daemon.socket()).exists());
}

#[test]
fn a_daemon_that_answers_can_be_stopped() {
    let rig = Rig::new().unwrap();
    let mut daemon = Daemon::start(&rig, "").unwrap();
    for nth in 0..12 {
        let status = daemon.stop().unwrap();
        assert!(status.success(), "{nth}: {status}");
        daemon.restart(&rig).unwrap();
    }
}

#[test]
fn eight_idle_nics_cost_less_than_one_percent_of_a_cpu() {
    let rig = Rig::new().unwrap();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| (name, ""));
    let (mut daemon, guests) = private_lan(&rig, &names).unwrap();
    assert!(guests[0].namespace.reaches(&guests[7].address()));
    // The frames that guests send when their devices come up have been forwarded.
    wait_asleep(&daemon);
    // Both the CPU time and the elapsed time are the kernel's, and load does not increase their
    // ratio. An idle daemon uses a fifth of the limit.
    let (started, before) = (Instant::now(), daemon.process().cpu_time().unwrap());
    thread::sleep(Duration::from_secs(10));
    let (used, window) = (daemon.process().cpu_time().unwrap() - before, started.elapsed());
    println!("{used:?} of {window:?}");
    assert!(used < window / 100, "{used:?} of {window:?}");
    wait_asleep(&daemon);
}

/// Waits until the daemon reports all workers asleep.
fn wait_asleep(daemon: &Daemon) {
    let mut workers = serde_json::Value::Null;
    let result = wait_until("sleeping workers", LIMIT, || {
        workers = daemon.json(&["worker", "list"])?;
        Ok(workers.as_array().unwrap().iter().all(|worker| worker["asleep"] == true))
    });
    result.unwrap_or_else(|error| panic!("{error:#}: {workers}"));
}

#[test]
fn a_capture_is_readable_by_other_programs_and_disturbs_no_traffic() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", ""), ("b", ""), ("c", "")]).unwrap();
    let [a, b, c] = guests.as_slice() else { panic!() };
    assert!(a.namespace.reaches(&b.address()));
    let file = rig.file("a.pcapng");
    let _server = iperf::serve(&rig, &b.namespace).unwrap();
    thread::scope(|scope| {
        let path = file.to_str().unwrap();
        let capture =
            scope.spawn(|| daemon.ok(&["nic", "capture", "a", "-w", path, "--count", "20"]));
        wait_until("a running capture", LIMIT, || Ok(file.exists())).unwrap();
        let stream = scope.spawn(|| iperf::measure(&c.namespace, &b.address(), 3, &[]));
        wait_until("end of the capture", LIMIT, || {
            a.namespace.ping(&b.address())?;
            Ok(capture.is_finished())
        })
        .unwrap();
        capture.join().unwrap().unwrap();
        let stream = stream.join().unwrap().unwrap();
        println!("the stream carried {:.0} bit/s beside the capture", stream.bits_per_second);
        assert!(stream.bits_per_second > 0.0, "{stream:?}");
    });
    let summary = summarize_capture(&file).unwrap();
    assert_eq!(summary.lines.len(), 20, "{summary:?}");
    let lines = summary.lines.join("\n");
    // Without timestamps, which could contain the port number.
    let described =
        suimon_rig::run(&["tcpdump", "-t", "-nn", "-r", file.to_str().unwrap()]).unwrap();
    assert!(
        described.contains("ICMP echo request") && described.contains("ICMP echo reply"),
        "{lines}"
    );
    assert!(!described.contains(".5201"), "another port's traffic was captured: {described}");
}

#[test]
fn top_shows_live_rates() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", ""), ("b", "")]).unwrap();
    let [a, b] = guests.as_slice() else { panic!() };
    let _server = iperf::serve(&rig, &b.namespace).unwrap();
    let arguments = ["iperf3", "--client", &b.address(), "--time", "600"];
    let _stream = a.namespace.start(&rig, "stream", &arguments).unwrap();
    wait_until("stream", LIMIT, || {
        let counters = daemon.json(&["nic", "show", "a"])?["counters"].take();
        Ok(counters["rx_bytes"].as_u64() > Some(10 << 20))
    })
    .unwrap();
    let top = daemon.json(&["top", "--interval", "1000"]).unwrap();
    let text = top.to_string();
    for heading in ["nics", "uplinks", "workers"] {
        assert!(text.contains(heading), "{text}");
    }
    assert!(daemon.ok(&["top", "--once"]).unwrap().contains("a"));
}

#[test]
fn a_name_that_was_deleted_can_be_used_again() {
    let rig = Rig::new().unwrap();
    let guest = NamespaceGuest::new(&rig, "a", 1).unwrap();
    let mut daemon = Daemon::start(&rig, LAN).unwrap();
    for _ in 0..5 {
        daemon.apply_ok(&format!("{LAN}{}", guest.nic_toml("lan", ""))).unwrap();
        guest.bring_up().unwrap();
        daemon.apply_ok(LAN).unwrap();
    }
    let output = guest.namespace.run_any(&["ip", "link", "show", "eth0"], LIMIT).unwrap();
    assert!(!output.is_ok());
}
