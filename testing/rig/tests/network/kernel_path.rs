//! Namespace guests whose frames the kernel forwards: only what the configuration permits, with
//! complete counters, with live changes, and across crashes of the daemon.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{
    Daemon, Namespace, NamespaceGuest, Rig, iperf, private_lan, summarize_capture, wait_until,
};

use crate::streams::{sample, tcp_stream};

const KEYS: &str = "kernel_path = true";
/// Deadline of every condition. The machine may be loaded.
const LIMIT: Duration = Duration::from_secs(120);
const STREAM_BYTES: u64 = 8 << 20;

/// Returns what `suimon nic show` reports about a NIC's kernel path.
fn path(daemon: &Daemon, nic: &str) -> Value {
    daemon.json(&["nic", "show", nic]).unwrap()["kernel_path"].clone()
}

fn moved(daemon: &Daemon, nic: &str) -> u64 {
    path(daemon, nic)["rx_bytes"].as_u64().unwrap()
}

/// Sends streams between the guests in both directions over IPv4 and IPv6. Returns the number of
/// bytes of `from` that the kernel forwarded.
fn streams(daemon: &Daemon, from: &NamespaceGuest, to: &NamespaceGuest) -> u64 {
    let before = moved(daemon, &from.nic);
    let bytes = sample(STREAM_BYTES);
    for (from, to) in [(from, to), (to, from)] {
        for address in [to.address(), to.address_v6()] {
            let address = SocketAddr::new(address.parse().unwrap(), 7008);
            tcp_stream(&from.namespace, &to.namespace, address, &bytes, "between guests");
        }
        assert_eq!(to.namespace.checksum_errors().unwrap(), 0);
    }
    moved(daemon, &from.nic) - before
}

/// Waits until the kernel forwards frames between the guests.
pub(crate) fn wait_kernel_path_used(daemon: &Daemon, from: &NamespaceGuest, to: &NamespaceGuest) {
    wait_until("forwarding by the kernel", LIMIT, || {
        let before = moved(daemon, &from.nic);
        from.namespace.ping(&to.address())?;
        Ok(moved(daemon, &from.nic) > before)
    })
    .unwrap();
}

/// Returns the devices of a namespace except loopback.
fn devices(namespace: &Namespace) -> Vec<String> {
    let links = namespace.run(&["ip", "-o", "link"]).unwrap();
    let names = links.lines().filter_map(|line| line.split(": ").nth(1));
    let names = names.map(|name| name.split('@').next().unwrap_or(name).to_owned());
    names.filter(|name| name != "lo").collect()
}

#[test]
fn streams_use_the_kernel_path_while_nothing_requires_the_switch() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", KEYS), ("b", KEYS), ("c", "")]).unwrap();
    let [a, b, c] = &guests[..] else { panic!("{guests:?}") };
    wait_kernel_path_used(&daemon, a, b);
    let rx_bytes = || daemon.json(&["nic", "show", "a"]).unwrap()["counters"]["rx_bytes"].as_u64();
    let before = rx_bytes().unwrap();
    let moved = streams(&daemon, a, b);
    assert!(moved > 2 * STREAM_BYTES, "{moved} of {}", 2 * STREAM_BYTES);
    assert!(rx_bytes().unwrap() - before >= moved, "the NIC's counters include forwarded bytes");
    assert_eq!(streams(&daemon, a, c), 0, "the third NIC has no kernel path");
    assert!(path(&daemon, "c").is_null());

    // Frames that the switch has to process are redirected to it immediately, for as long as
    // necessary.
    for (set, unset, reason) in [
        ("--bandwidth-max-bps=100000000000", "bandwidth_max_bps", "bandwidth_max_bps"),
        ("--isolated=true", "isolated", "isolated"),
        ("--offload-rx-checksum=false", "offload.rx_checksum", "offload"),
        ("--offload-segmentation=false", "offload.segmentation", "offload"),
    ] {
        daemon.ok(&["nic", "set", "b", set]).unwrap();
        assert_eq!(streams(&daemon, a, b), 0, "{set}");
        let kernel_path = path(&daemon, "b");
        let closed_reason = kernel_path["reason"].as_str().unwrap_or_default();
        assert!(
            kernel_path["open"] == false && closed_reason.contains(reason),
            "{set}: {kernel_path}"
        );
        daemon.ok(&["nic", "set", "b", "--unset", unset]).unwrap();
        wait_kernel_path_used(&daemon, a, b);
    }
}

#[test]
fn it_comes_and_goes_live_and_leaves_nothing() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", KEYS), ("b", KEYS)]).unwrap();
    let [a, b] = &guests[..] else { panic!("{guests:?}") };
    wait_kernel_path_used(&daemon, a, b);
    assert_eq!(devices(&a.namespace).len(), 2, "{:?}", devices(&a.namespace));
    daemon.ok(&["nic", "set", "a", "--kernel-path=false"]).unwrap();
    assert_eq!(devices(&a.namespace), [NamespaceGuest::DEVICE]);
    let counted = moved(&daemon, "b");
    assert!(a.namespace.ping(&b.address()).unwrap());
    assert_eq!(moved(&daemon, "b"), counted);
    daemon.ok(&["nic", "set", "a", "--kernel-path=true"]).unwrap();
    wait_kernel_path_used(&daemon, a, b);
    daemon.ok(&["nic", "delete", "a"]).unwrap();
    assert!(devices(&a.namespace).is_empty(), "{:?}", devices(&a.namespace));
}

#[test]
fn a_capture_sees_frames_that_would_use_the_kernel_path() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", KEYS), ("b", KEYS)]).unwrap();
    let [a, b] = &guests[..] else { panic!("{guests:?}") };
    wait_kernel_path_used(&daemon, a, b);
    let file = rig.file("taken.pcapng");
    let written = rig.path("taken.pcapng");
    let arguments = ["nic", "capture", "a", "-w", &written, "--count", "20"];
    thread::scope(|scope| {
        let capture = scope.spawn(|| daemon.ok(&arguments));
        wait_until("a running capture", LIMIT, || Ok(file.exists())).unwrap();
        wait_until("end of the capture", LIMIT, || {
            a.namespace.ping(&b.address())?;
            Ok(capture.is_finished())
        })
        .unwrap();
        capture.join().unwrap().unwrap();
    });
    assert_eq!(summarize_capture(&file).unwrap().lines.len(), 20);
    wait_kernel_path_used(&daemon, a, b);
}

#[test]
fn connections_survive_a_killed_daemon_and_the_kernel_path_is_restored() {
    let rig = Rig::new().unwrap();
    let (mut daemon, guests) = private_lan(&rig, &[("a", KEYS), ("b", KEYS)]).unwrap();
    let [a, b] = &guests[..] else { panic!("{guests:?}") };
    wait_kernel_path_used(&daemon, a, b);
    let _server = iperf::serve(&rig, &b.namespace).unwrap();
    let mut stream = iperf::Client::begin(&rig, &a.namespace, &b.address(), 1, &[]).unwrap();
    for _ in 0..2 {
        daemon.kill();
        daemon.restart(&rig).unwrap();
        wait_kernel_path_used(&daemon, a, b);
        stream.wait_flow("the stream after a kill").unwrap();
    }
    wait_until("bytes of the stream on the kernel's path", LIMIT, || {
        stream.check_running()?;
        Ok(moved(&daemon, "a") > STREAM_BYTES)
    })
    .unwrap();
    stream.end().unwrap();
    assert_eq!(devices(&a.namespace).len(), 2, "{:?}", devices(&a.namespace));
}
