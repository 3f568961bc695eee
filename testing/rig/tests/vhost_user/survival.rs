//! A VM's connections survive what happens to the daemon and to the VM's place:
//! a daemon that is killed, one that is replaced, a move to another port.

use std::fs::File;
use std::io::{Read, Write};
use std::time::Duration;

use suimon_rig::{
    Daemon, Guest, GuestNic, GuestSpec, LightGuest, Process, Rig, Testpmd, TestpmdSpec, iperf,
    nginx, until,
};

const VM_MAC: &str = "52:54:00:aa:00:01";
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

/// What a server of iperf3 received, in tenths of a second.
fn tenths(server: &Process) -> Vec<u64> {
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains("sec") && line.contains("Bytes"));
    let lines = lines.filter(|line| !line.contains("receiver") && !line.contains("sender"));
    let kilobits = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let unit = words.iter().position(|word| word.ends_with("bits/sec"))?;
        words.get(unit - 1)?.parse::<f64>().ok()
    };
    lines.filter_map(|line| kilobits(line).map(|rate| rate as u64)).collect()
}

/// How long nothing arrived, each time, in tenths of a second.
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

/// How the daemon goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Killed,
    Replaced,
}

/// A guest's TCP stream flows while the daemon goes and comes back, `times` times.
/// Returns the times in which nothing arrived, in tenths of a second.
fn stream_across(way: Way, listens: bool, times: u32) -> Vec<usize> {
    let rig = Rig::new().unwrap();
    let light = LightGuest::new(&rig, "light", 1).unwrap();
    let socket = rig.path("vm.sock");
    let keys = if listens { "mode = \"client\"" } else { "" };
    let host = format!("{LAN}{}{}", light.nic_toml("lan", ""), vm_toml("vm", &socket, keys));
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    light.bring_up().unwrap();
    let nic = GuestNic { listens, ..GuestNic::new(&socket, VM_MAC) };
    let mut vm = Guest::start(&rig, &spec("vm", vec![nic], 1)).unwrap();
    vm.address("eth0", "10.77.0.9/24").unwrap();
    assert!(vm.reaches(&light.address()).unwrap());
    let words = ["iperf3", "--server", "--forceflush", "--interval", "0.1", "--format", "k"];
    let server = light.namespace.start(&rig, "iperf3-server", &words).unwrap();
    until("listening iperf3", Duration::from_secs(10), || {
        Ok(light.namespace.run(&["ss", "-ltn"])?.contains(":5201"))
    })
    .unwrap();
    let seconds = 3 + times * 4;
    vm.begin(&format!(
        "iperf3 --client {} --time {seconds} --bitrate 50M >/tmp/o 2>&1; code=$?; tail -4 /tmp/o; \
         exit $code",
        light.address()
    ))
    .unwrap();
    until("a stream", Duration::from_secs(20), || Ok(tenths(&server).len() > 5)).unwrap();
    for _ in 0..times {
        match way {
            Way::Killed => daemon.kill(),
            Way::Replaced => assert!(daemon.stop().unwrap().success()),
        }
        daemon.restart(&rig).unwrap();
        daemon.wait_up("nic", "vm").unwrap();
        let before = tenths(&server).len();
        until("a stream that flows again", Duration::from_secs(10), || {
            let since = tenths(&server).split_off(before);
            Ok(since.len() >= 5 && since.iter().rev().take(3).all(|rate| *rate > 0))
        })
        .unwrap();
    }
    let ended = vm.finish(Duration::from_secs(u64::from(seconds) + 60)).unwrap();
    assert!(ended.is_ok(), "the guest's iperf3: {}", ended.stdout);
    let arrived = tenths(&server);
    let gaps = gaps(&arrived);
    println!(
        "{way:?} {times} times, QEMU listens: {listens}: nothing arrived for {gaps:?} tenths of a second"
    );
    let total: u64 = arrived.iter().sum();
    assert!(total > 0 && arrived.len() as u32 > seconds * 9, "{arrived:?}");
    // The stream is alive at its end, not only still open.
    assert!(arrived.iter().rev().take(15).any(|rate| *rate > 0), "{arrived:?}");
    assert_eq!(light.namespace.checksum_errors().unwrap(), 0);
    gaps
}

#[test]
fn a_guest_s_tcp_session_survives_ten_kills_of_the_daemon() {
    let gaps = stream_across(Way::Killed, false, 10);
    // QEMU tries once a second, and TCP waits up to twice as long as the gap was.
    assert!(gaps.iter().all(|gap| *gap < 60), "{gaps:?}");
}

#[test]
fn a_daemon_that_is_replaced_interrupts_a_guest_that_listens_only_briefly() {
    for way in [Way::Killed, Way::Replaced] {
        let gaps = stream_across(way, true, 3);
        assert!(gaps.iter().all(|gap| *gap < 30), "{way:?} {gaps:?}");
    }
}

#[test]
fn a_daemon_is_replaced_under_a_guest_that_connects() {
    let gaps = stream_across(Way::Replaced, false, 3);
    assert!(gaps.iter().all(|gap| *gap < 60), "{gaps:?}");
}

/// A guest moves to another QEMU at another port while it downloads. What it has
/// received in the end is what was sent: no page that the switch wrote was lost.
#[test]
fn a_guest_moves_to_another_port_while_it_downloads() {
    let rig = Rig::new().unwrap();
    let light = LightGuest::new(&rig, "light", 1).unwrap();
    let sockets = [rig.path("a.sock"), rig.path("b.sock")];
    let host = format!(
        "{LAN}{}{}{}",
        light.nic_toml("lan", ""),
        vm_toml("before", &sockets[0], ""),
        vm_toml("after", &sockets[1], "")
    );
    let daemon = Daemon::start(&rig, &host).unwrap();
    light.bring_up().unwrap();
    let bytes = 192 * 1024 * 1024;
    let _server = nginx::serve(&rig, &light.namespace, bytes).unwrap();
    let expected = fill(&rig, bytes);
    let at = |socket: &str| vec![GuestNic::new(socket, VM_MAC)];
    let mut source = Guest::start(&rig, &spec("source", at(&sockets[0]), 1)).unwrap();
    source.address("eth0", "10.77.0.9/24").unwrap();
    assert!(source.reaches(&light.address()).unwrap());
    let features = source.run("cat /sys/bus/virtio/drivers/virtio_net/virtio*/features").unwrap();
    assert_eq!(features.as_bytes()[21], b'1', "the guest announces itself: {features}");
    source
        .run(&format!(
            "(wget -q -O - http://{}/file | md5sum >/tmp/sum; echo done >/tmp/done) >/dev/null 2>&1 &",
            light.address()
        ))
        .unwrap();
    let address = rig.path("move.sock");
    let mut moved = Guest::destination(&rig, &spec("moved", at(&sockets[1]), 1), &address).unwrap();
    let stood_still = source.migrate(&address, 48 * 1024 * 1024).unwrap();
    let was_under_way = moved.run_any("test -e /tmp/done", Duration::from_secs(60)).unwrap();
    println!("the guest stood still for {} ms", stood_still.as_millis());
    assert!(!was_under_way.is_ok(), "the download was over before the guest had moved");
    drop(source);
    until("end of the download", Duration::from_secs(90), || {
        Ok(moved.run_any("test -e /tmp/done", Duration::from_secs(20))?.is_ok())
    })
    .unwrap();
    let sum = moved.run("cat /tmp/sum").unwrap();
    assert_eq!(sum.split_whitespace().next().unwrap(), expected);
    // The switch knows where it is now.
    let known = daemon.json(&["switch", "addresses", "lan"]).unwrap();
    let entry = known.as_array().unwrap().iter().find(|entry| entry["mac"] == VM_MAC);
    assert!(entry.unwrap().to_string().contains("after"), "{known}");
    assert!(light.namespace.reaches("10.77.0.9"));
}

/// Fills the file that nginx serves with bytes that no two places share, and
/// returns its MD5 sum.
fn fill(rig: &Rig, bytes: u64) -> String {
    let found = std::fs::read_dir(rig.folder()).unwrap().filter_map(Result::ok);
    let path = found
        .map(|entry| entry.path().join("www/file"))
        .find(|path| path.exists())
        .expect("nginx's file");
    let mut random = File::open("/dev/urandom").unwrap();
    let mut file = File::create(&path).unwrap();
    let mut buffer = vec![0; 1024 * 1024];
    for _ in 0..bytes / buffer.len() as u64 {
        random.read_exact(&mut buffer).unwrap();
        file.write_all(&buffer).unwrap();
    }
    drop(file);
    let sum = suimon_rig::run(&["md5sum", path.to_str().unwrap()]).unwrap();
    sum.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_vm_uses_eight_queue_pairs() {
    let rig = Rig::new().unwrap();
    let light = LightGuest::new(&rig, "light", 1).unwrap();
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
    until("eight queue pairs", Duration::from_secs(10), || {
        Ok(daemon.json(&["nic", "show", "vm"])?["queue_pairs"] == 8)
    })
    .unwrap();
    let _server = iperf::serve(&rig, &light.namespace).unwrap();
    let command = format!("iperf3 --client {} --time 2 --parallel 16 --json", light.address());
    let said = vm.run_any(&command, Duration::from_secs(60)).unwrap();
    assert!(iperf::report(&said.stdout).unwrap().bits_per_second > 1e6);
}

#[test]
fn a_vm_with_packed_rings_is_served_and_offloads_work() {
    let rig = Rig::new().unwrap();
    let light = LightGuest::new(&rig, "light", 1).unwrap();
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
        let said = vm.run_any(&command, Duration::from_secs(30)).unwrap();
        assert!(iperf::report(&said.stdout).unwrap().bits_per_second > 1e6);
    }
    // Its rings are stopped and started again, at their place in the ring.
    vm.run("ip link set eth0 mtu 1400").unwrap();
    daemon.ok(&["nic", "set", "vm", "--vlan", "7"]).unwrap();
    assert!(!vm.reaches(&light.address()).unwrap());
    daemon.ok(&["nic", "set", "vm", "--unset", "vlan"]).unwrap();
    assert!(vm.reaches(&light.address()).unwrap());
    assert_eq!(light.namespace.checksum_errors().unwrap(), 0);
}

/// DPDK's driver in every form that it has.
#[test]
fn testpmd_s_vms_use_every_form_of_ring() {
    let forms = [
        (1, ",in_order=0"),
        (1, ",in_order=1"),
        (1, ",mrg_rxbuf=0,in_order=1"),
        (1, ",packed_vq=1,in_order=0"),
        (1, ",packed_vq=1,in_order=1"),
        (1, ",packed_vq=1,mrg_rxbuf=0,in_order=1"),
        (8, ",in_order=1"),
        (8, ",packed_vq=1"),
    ];
    for (queues, form) in forms {
        let rig = Rig::new().unwrap();
        let sockets = [rig.path("vh0.sock"), rig.path("vh1.sock")];
        let keys = format!("queues = {queues}");
        let host = format!(
            "[host]\nprocessors = [0]\n{LAN}{}{}",
            vm_toml("left", &sockets[0], &keys),
            vm_toml("right", &sockets[1], &keys)
        );
        let daemon = Daemon::start(&rig, &host).unwrap();
        let macs = ["02:00:00:00:00:01", "02:00:00:00:00:02"].map(str::to_owned);
        let mut spec = TestpmdSpec::new(sockets, macs);
        spec.queues = queues;
        spec.device_extra = form.to_owned();
        let mut testpmd = Testpmd::start(&rig, &spec).unwrap();
        testpmd.start_circulating().unwrap();
        let rate = testpmd.rate(Duration::from_secs(1)).unwrap();
        println!("{queues} queue pairs{form}: {:.2} million frames a second", rate / 1e6);
        assert!(rate > 1000.0, "{queues}{form}: {rate}");
        let stats = testpmd.stats().unwrap();
        assert!(stats.iter().all(|port| port.rx_packets > 1000), "{queues}{form} {stats:?}");
        let status = daemon.json(&["nic", "show", "left"]).unwrap();
        assert_eq!(status["queue_pairs"], queues, "{form}: {status}");
        testpmd.ask("stop").unwrap();
    }
}
