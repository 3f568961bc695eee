//! A VM's connections survive a killed daemon, a replaced daemon, and a migration to another port.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use suimon_rig::{
    Daemon, Guest, GuestNic, GuestSpec, NamespaceGuest, Process, Rig, Testpmd, TestpmdSpec, iperf,
    run, wait_until,
};

const VM_MAC: &str = "52:54:00:aa:00:01";
/// Deadline of every condition and command. The machine may be loaded.
const LIMIT: Duration = Duration::from_secs(300);
const LAN: &str = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n";

fn vm_toml(name: &str, socket: &str, keys: &str) -> String {
    format!(
        "[[nic]]\nname = \"{name}\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
         socket = \"{socket}\"\n{keys}\n"
    )
}

fn spec(name: &str, nics: Vec<GuestNic>, cpus: u16) -> GuestSpec {
    GuestSpec { name: name.to_owned(), nics, cpus, ..GuestSpec::default() }
}

/// Returns the rates that an iperf3 server has reported in kbit/s, one for each tenth of a second.
fn tenths(server: &Process) -> Vec<u64> {
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains("sec") && line.contains("Bytes"));
    let lines = lines.filter(|line| !line.contains("receiver") && !line.contains("sender"));
    let kilobits = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let unit = fields.iter().position(|field| field.ends_with("bits/sec"))?;
        fields.get(unit - 1)?.parse::<f64>().ok()
    };
    lines.filter_map(|line| kilobits(line).map(|rate| rate as u64)).collect()
}

/// Returns the pauses longer than a tenth of a second, in tenths of a second.
fn gaps(tenths: &[u64]) -> Vec<usize> {
    let mut gaps = Vec::new();
    let mut length = 0;
    for rate in tenths {
        if *rate == 0 {
            length += 1;
        } else if length > 0 {
            gaps.push(length);
            length = 0;
        }
    }
    gaps.push(length);
    gaps.retain(|gap| *gap > 1);
    gaps
}

/// How the daemon ends before the next one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DaemonEnd {
    Killed,
    Replaced,
}

/// Asserts that a guest's TCP stream continues while the daemon ends and restarts `times` times.
fn stream_across(replacement: DaemonEnd, listens: bool, times: u32) {
    let rig = Rig::new().unwrap();
    let light = NamespaceGuest::new(&rig, "light", 1).unwrap();
    let socket = rig.path("vm.sock");
    let keys = if listens { "mode = \"client\"" } else { "" };
    let host = format!("{LAN}{}{}", light.nic_toml("lan", ""), vm_toml("vm", &socket, keys));
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    light.bring_up().unwrap();
    let nic = GuestNic { listens, ..GuestNic::new(&socket, VM_MAC) };
    let mut vm = Guest::start(&rig, &spec("vm", vec![nic], 1)).unwrap();
    vm.address("eth0", "10.77.0.9/24").unwrap();
    assert!(vm.reaches(&light.address()).unwrap());
    let arguments = ["iperf3", "--server", "--forceflush", "--interval", "0.1", "--format", "k"];
    let server = light.namespace.start(&rig, "iperf3-server", &arguments).unwrap();
    wait_until("listening iperf3", LIMIT, || {
        Ok(light.namespace.run(&["ss", "-ltn"])?.contains(":5201"))
    })
    .unwrap();
    let client = format!("iperf3 --client {} --time 3600 --bitrate 50M", light.address());
    vm.run(&format!("({client} >/tmp/report 2>&1; echo done >/tmp/end) &")).unwrap();
    wait_until("a stream", LIMIT, || Ok(tenths(&server).len() > 5)).unwrap();
    for _ in 0..times {
        match replacement {
            DaemonEnd::Killed => daemon.kill(),
            DaemonEnd::Replaced => assert!(daemon.stop().unwrap().success()),
        }
        daemon.restart(&rig).unwrap();
        daemon.wait_up("nic", "vm").unwrap();
        let before = tenths(&server).len();
        let flows = wait_until("a stream that flows again", LIMIT, || {
            let since = tenths(&server).split_off(before);
            Ok(since.len() >= 5 && since.iter().rev().take(3).all(|rate| *rate > 0))
        });
        flows.unwrap_or_else(|error| panic!("{error:#}: {:?}", tenths(&server)));
    }
    // The connection is still the initial one.
    let still = "[ ! -e /tmp/end ] && killall -INT iperf3";
    let output = vm.run_any(still, LIMIT).unwrap();
    assert!(output.is_ok(), "the guest's iperf3: {}", vm.run("tail -4 /tmp/report").unwrap());
    let gaps = gaps(&tenths(&server));
    // The length of a pause depends on the time of QEMU's reconnect and on TCP's retransmission
    // timers, which double.
    println!(
        "{replacement:?} {times} times, QEMU listens: {listens}: nothing arrived for \
         {gaps:?} tenths of a second"
    );
    assert_eq!(light.namespace.checksum_errors().unwrap(), 0);
}

fn a_guest_s_tcp_session_survives_kills_of_the_daemon() {
    stream_across(DaemonEnd::Killed, false, 2);
}

fn a_daemon_that_is_replaced_interrupts_a_guest_that_listens_only_briefly() {
    for replacement in [DaemonEnd::Killed, DaemonEnd::Replaced] {
        stream_across(replacement, true, 1);
    }
}

fn a_daemon_is_replaced_under_a_guest_that_connects() {
    stream_across(DaemonEnd::Replaced, false, 1);
}

/// A guest is migrated to another QEMU at another port during a download. The received data must be
/// complete: no page written by the switch may be lost.
fn a_guest_moves_to_another_port_while_it_downloads() {
    let rig = Rig::new().unwrap();
    let light = NamespaceGuest::new(&rig, "light", 1).unwrap();
    let sockets = [rig.path("a.sock"), rig.path("b.sock")];
    let host = format!(
        "{LAN}{}{}{}",
        light.nic_toml("lan", ""),
        vm_toml("before", &sockets[0], ""),
        vm_toml("after", &sockets[1], "")
    );
    let daemon = Daemon::start(&rig, &host).unwrap();
    light.bring_up().unwrap();
    let download = Download::open(&rig, &light);
    let nics = |socket: &str| vec![GuestNic::new(socket, VM_MAC)];
    let mut source = Guest::start(&rig, &spec("source", nics(&sockets[0]), 1)).unwrap();
    source.address("eth0", "10.77.0.9/24").unwrap();
    assert!(source.reaches(&light.address()).unwrap());
    let features = source.run("cat /sys/bus/virtio/drivers/virtio_net/virtio*/features").unwrap();
    assert_eq!(features.as_bytes()[21], b'1', "the guest announces itself: {features}");
    let (address, port) = (download.address.ip(), download.address.port());
    let fetch = format!("nc {address} {port} </dev/null | md5sum >/tmp/sum; echo done >/tmp/done");
    source.run(&format!("({fetch}) >/dev/null 2>&1 &")).unwrap();
    let has_moved = AtomicBool::new(false);
    let (mut moved, expected) = thread::scope(|scope| {
        let sender = scope.spawn(|| download.send(&has_moved));
        let socket_path = rig.path("move.sock");
        let moved = Guest::destination(&rig, &spec("moved", nics(&sockets[1]), 1), &socket_path)
            .and_then(|moved| Ok((moved, source.migrate(&socket_path, 48 * 1024 * 1024)?)));
        has_moved.store(true, Ordering::Relaxed);
        let expected = sender.join().unwrap();
        let (moved, stood_still) = moved.unwrap();
        println!("the guest was stopped for {} ms", stood_still.as_millis());
        (moved, expected)
    });
    drop(source);
    wait_until("end of the download", LIMIT, || {
        Ok(moved.run_any("test -e /tmp/done", LIMIT)?.is_ok())
    })
    .unwrap();
    let sum = moved.run("cat /tmp/sum").unwrap();
    assert_eq!(sum.split_whitespace().next().unwrap(), expected);
    // The switch has learned the new port.
    let addresses = daemon.json(&["switch", "addresses", "lan"]).unwrap();
    let entry = addresses.as_array().unwrap().iter().find(|entry| entry["mac"] == VM_MAC);
    assert!(entry.unwrap().to_string().contains("after"), "{addresses}");
    assert!(light.namespace.reaches("10.77.0.9"));
}

/// Random bytes sent to a guest during its migration, and stored in a file.
struct Download {
    address: SocketAddr,
    listener: TcpListener,
    file: String,
}

impl Download {
    /// Minimum number of bytes sent, and number of bytes sent after the migration.
    const BYTES_MIN: usize = 96 << 20;
    const BYTES_AFTER: usize = 16 << 20;
    /// Pause between two mebibytes: the guest writes to its memory continuously, but not too fast
    /// for a migration.
    const EVERY: Duration = Duration::from_millis(40);

    fn open(rig: &Rig, light: &NamespaceGuest) -> Self {
        let address = SocketAddr::new(light.address().parse().unwrap(), 7009);
        let listener = light.namespace.inside(|| TcpListener::bind(address).unwrap()).unwrap();
        Self { address, listener, file: rig.path("download") }
    }

    /// Sends bytes until the guest was migrated, and some more. Returns the MD5 sum of all.
    fn send(&self, has_moved: &AtomicBool) -> String {
        let mut random = File::open("/dev/urandom").unwrap();
        let mut file = File::create(&self.file).unwrap();
        let (mut stream, _) = self.listener.accept().unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        let mut buffer = vec![0; 1 << 20];
        let (mut sent_bytes, mut after) = (0, 0);
        while sent_bytes < Self::BYTES_MIN || after < Self::BYTES_AFTER {
            random.read_exact(&mut buffer).unwrap();
            file.write_all(&buffer).unwrap();
            stream.write_all(&buffer).unwrap();
            sent_bytes += buffer.len();
            after += if has_moved.load(Ordering::Relaxed) { buffer.len() } else { 0 };
            thread::sleep(Self::EVERY);
        }
        println!(
            "{} MiB were sent, {} of them after the guest had moved",
            sent_bytes >> 20,
            after >> 20
        );
        drop((stream, file));
        let sum = run(&["md5sum", &self.file]).unwrap();
        std::fs::remove_file(&self.file).unwrap();
        sum.split_whitespace().next().unwrap().to_owned()
    }
}

fn a_vm_uses_eight_queue_pairs() {
    let rig = Rig::new().unwrap();
    let light = NamespaceGuest::new(&rig, "light", 1).unwrap();
    let socket = rig.path("vm.sock");
    let host =
        format!("{LAN}{}{}", light.nic_toml("lan", ""), vm_toml("vm", &socket, "queues = 8"));
    let daemon = Daemon::start(&rig, &host).unwrap();
    light.bring_up().unwrap();
    let nic = GuestNic { queues: 8, ..GuestNic::new(&socket, VM_MAC) };
    let mut vm = Guest::start(&rig, &spec("vm", vec![nic], 8)).unwrap();
    vm.run("ethtool -L eth0 combined 8").unwrap();
    vm.address("eth0", "10.77.0.9/24").unwrap();
    assert!(vm.reaches(&light.address()).unwrap());
    wait_until("eight queue pairs", LIMIT, || {
        Ok(daemon.json(&["nic", "show", "vm"])?["queue_pairs"] == 8)
    })
    .unwrap();
    let _server = iperf::serve(&rig, &light.namespace).unwrap();
    let command = format!("iperf3 --client {} --time 2 --parallel 16 --json", light.address());
    let output = vm.run_any(&command, LIMIT).unwrap();
    assert!(iperf::report(&output.stdout).unwrap().bits_per_second > 0.0);
}

fn a_vm_with_packed_rings_is_served_and_offloads_work() {
    let rig = Rig::new().unwrap();
    let light = NamespaceGuest::new(&rig, "light", 1).unwrap();
    let socket = rig.path("vm.sock");
    let host = format!("{LAN}{}{}", light.nic_toml("lan", ""), vm_toml("vm", &socket, ""));
    let daemon = Daemon::start(&rig, &host).unwrap();
    light.bring_up().unwrap();
    let nic = GuestNic { properties: ",packed=on".to_owned(), ..GuestNic::new(&socket, VM_MAC) };
    let mut vm = Guest::start(&rig, &spec("vm", vec![nic], 1)).unwrap();
    vm.address("eth0", "10.77.0.9/24").unwrap();
    assert!(vm.reaches(&light.address()).unwrap());
    let features = vm.run("cat /sys/bus/virtio/drivers/virtio_net/virtio*/features").unwrap();
    assert_eq!(features.as_bytes()[34], b'1', "packed: {features}");
    let _server = iperf::serve(&rig, &light.namespace).unwrap();
    for direction in ["", "--reverse"] {
        let command = format!("iperf3 --client {} --time 2 --json {direction}", light.address());
        let output = vm.run_any(&command, LIMIT).unwrap();
        assert!(iperf::report(&output.stdout).unwrap().bits_per_second > 0.0);
    }
    // The rings are stopped and restarted at the same position.
    vm.run("ip link set eth0 mtu 1400").unwrap();
    daemon.ok(&["nic", "set", "vm", "--vlan", "7"]).unwrap();
    assert!(vm.cannot_reach(&light.address()).unwrap());
    daemon.ok(&["nic", "set", "vm", "--unset", "vlan"]).unwrap();
    assert!(vm.reaches(&light.address()).unwrap());
    assert_eq!(light.namespace.checksum_errors().unwrap(), 0);
}

/// Number of queue pairs, and options of DPDK's driver that select the ring format.
type Form = (u16, &'static str);

/// Split and packed rings, in order and out of order, with and without mergeable buffers.
const FEW: [Form; 4] = [
    (1, ",in_order=0"),
    (1, ",mrg_rxbuf=0,in_order=1"),
    (1, ",packed_vq=1,in_order=1"),
    (8, ",packed_vq=1"),
];

fn testpmd_uses(forms: &[Form]) {
    for (queues, form) in forms {
        let rig = Rig::new().unwrap();
        let sockets = [rig.path("vh0.sock"), rig.path("vh1.sock")];
        let keys = format!("queues = {queues}");
        let host = format!(
            "[host]\nworker_cpus = [0]\n{LAN}{}{}",
            vm_toml("left", &sockets[0], &keys),
            vm_toml("right", &sockets[1], &keys)
        );
        let daemon = Daemon::start(&rig, &host).unwrap();
        let macs = ["02:00:00:00:00:01", "02:00:00:00:00:02"].map(str::to_owned);
        let mut spec = TestpmdSpec::new(sockets, macs);
        spec.queues = *queues;
        spec.device_extra = (*form).to_owned();
        let mut testpmd = Testpmd::start(&rig, &spec).unwrap();
        testpmd.start_circulating().unwrap();
        testpmd
            .wait_received(1000)
            .unwrap_or_else(|error| panic!("{queues} queue pairs{form}: {error:#}"));
        let status = daemon.json(&["nic", "show", "left"]).unwrap();
        assert_eq!(status["queue_pairs"], *queues, "{form}: {status}");
        testpmd.ask("stop").unwrap();
    }
}

#[test]
fn testpmd_s_vms_use_forms_of_ring() {
    testpmd_uses(&FEW);
}

mod full {
    use super::*;

    #[test]
    fn a_guest_s_tcp_session_survives_ten_kills_of_the_daemon() {
        stream_across(DaemonEnd::Killed, false, 10);
    }

    #[test]
    fn a_daemon_is_replaced_again_and_again() {
        for (replacement, listens) in
            [(DaemonEnd::Killed, true), (DaemonEnd::Replaced, true), (DaemonEnd::Replaced, false)]
        {
            stream_across(replacement, listens, 3);
        }
    }

    /// Tests DPDK's driver with every ring format.
    #[test]
    fn testpmd_s_vms_use_every_form_of_ring() {
        testpmd_uses(&[
            (1, ",in_order=0"),
            (1, ",in_order=1"),
            (1, ",mrg_rxbuf=0,in_order=1"),
            (1, ",packed_vq=1,in_order=0"),
            (1, ",packed_vq=1,in_order=1"),
            (1, ",packed_vq=1,mrg_rxbuf=0,in_order=1"),
            (8, ",in_order=1"),
            (8, ",packed_vq=1"),
        ]);
    }

    #[test]
    fn a_guest_moves_to_another_port_while_it_downloads() {
        super::a_guest_moves_to_another_port_while_it_downloads();
    }

    #[test]
    fn a_vm_uses_eight_queue_pairs() {
        super::a_vm_uses_eight_queue_pairs();
    }

    #[test]
    fn a_vm_with_packed_rings_is_served_and_offloads_work() {
        super::a_vm_with_packed_rings_is_served_and_offloads_work();
    }

    #[test]
    fn a_daemon_is_replaced_under_a_guest_that_connects() {
        super::a_daemon_is_replaced_under_a_guest_that_connects();
    }

    #[test]
    fn a_guest_s_tcp_session_survives_kills_of_the_daemon() {
        super::a_guest_s_tcp_session_survives_kills_of_the_daemon();
    }

    #[test]
    fn a_daemon_that_is_replaced_interrupts_a_guest_that_listens_only_briefly() {
        super::a_daemon_that_is_replaced_interrupts_a_guest_that_listens_only_briefly();
    }
}
