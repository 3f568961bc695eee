//! A VM whose NIC has two paths: a PCI Express NIC, which represents a virtual function, and
//! Suimon's NIC as its standby (VIRTIO_NET_F_STANDBY; `net_failover` in the guest).
//!
//! QEMU emulates the PCI Express NIC. A bridge represents the switch in an adapter: it connects the
//! NIC, Suimon's uplink and an outside namespace, and the test sets the port of the VM's address,
//! as the address of a VF is set in an adapter. TCP must survive both changes of path. The NIC has
//! a configured `mac`, as required with a VF: a learning switch would find the address behind the
//! uplink while the guest uses the other path, and would drop frames from the uplink until the
//! guest sends by the standby.
#![forbid(unsafe_code)]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use suimon_rig::{
    Daemon, Guest, GuestNic, GuestSpec, Namespace, Rig, Veth, iperf, run, wait_until,
};

const MAC: &str = "52:54:00:77:00:01";
const WORLD: &str = "10.77.0.200";
/// Deadline of every condition, such as the guest's use or release of a NIC. The guest is emulated,
/// and the machine may be loaded.
const LIMIT: Duration = Duration::from_secs(240);
/// Number of packets of the connection that must leave by the PCI Express NIC.
const PACKETS: u64 = 500;
/// Maximum number of packets that the standby sends on its own meanwhile.
const OTHERS_MAX: u64 = 20;

/// Simulated switch of an adapter, with an outside namespace.
struct Adapter {
    bridge: String,
    /// TAP device of the VM's PCI Express NIC.
    tap: String,
    /// Device of Suimon's uplink; its other end is `uplink_port` at the bridge.
    uplink: String,
    uplink_port: String,
    world: Namespace,
    _wire: Veth,
}

impl Adapter {
    fn new(rig: &Rig) -> Result<Self> {
        let world = Namespace::new(rig, "world")?;
        let device = |tag: &str| rig.device(tag);
        let (bridge, tap, uplink) = (device("br"), device("vf"), device("pf"));
        let (far, near, peer) = (device("pb"), device("wb"), device("w"));
        run(&["ip", "link", "add", &bridge, "type", "bridge", "forward_delay", "0"])?;
        let (uplink_port, _wire) = (far, Veth::new(&near, &peer, &world)?);
        let adapter = Self { bridge, tap, uplink, uplink_port, world, _wire };
        let far = &adapter.uplink_port;
        run(&["ip", "link", "add", &adapter.uplink, "type", "veth", "peer", "name", far])?;
        run(&["ip", "tuntap", "add", &adapter.tap, "mode", "tap"])?;
        for port in [&adapter.tap, far, &near] {
            run(&["ip", "link", "set", port, "master", &adapter.bridge, "up"])?;
        }
        for device in [&adapter.uplink, &adapter.bridge] {
            run(&["ip", "link", "set", device, "up"])?;
        }
        adapter.world.address(&peer, &format!("{WORLD}/24"))?;
        Ok(adapter)
    }

    /// Sets the port of the bridge to which frames for the VM are sent.
    fn set_egress(&self, port: &str) -> Result<()> {
        run(&["bridge", "fdb", "replace", MAC, "dev", port, "master", "static"]).map(drop)
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        for device in [&self.uplink, &self.tap, &self.bridge] {
            let _ = run(&["ip", "link", "delete", device]);
        }
    }
}

/// Hot-plugs the guest's PCI Express NIC, and waits until the guest has it.
fn plug(guest: &mut Guest, condition: &str) -> Result<()> {
    let device = json!({
        "driver": "e1000e", "id": "primary", "bus": "port0", "netdev": "vf", "mac": MAC,
        "failover_pair_id": "standby0", "romfile": "",
    });
    guest.execute_qmp("device_add", &device)?;
    wait_until(condition, LIMIT, || Ok(number_of_nics(guest)? == 3))
}

fn unplug(guest: &mut Guest) -> Result<()> {
    guest.execute_qmp("device_del", &json!({ "id": "primary" }))?;
    wait_until("the NIC was deleted", LIMIT, || Ok(number_of_nics(guest)? == 2))
}

/// Returns the number of the guest's network devices except loopback: the failover device, the
/// standby, and the PCI Express NIC if it is present.
fn number_of_nics(guest: &mut Guest) -> Result<usize> {
    Ok(guest.run("ls -d /sys/class/net/*/address | grep -vc /lo/")?.trim().parse()?)
}

/// Returns the pauses of a connection longer than 0.1 s: index of the first interval, and number of
/// intervals of 0.1 s.
fn pauses(report: &Value) -> Vec<(usize, usize)> {
    let mut pauses: Vec<(usize, usize)> = Vec::new();
    for (index, interval) in report["intervals"].as_array().into_iter().flatten().enumerate() {
        if interval["sum"]["bytes"] == 0 {
            match pauses.last_mut() {
                Some((start, length)) if *start + *length == index => *length += 1,
                _ => pauses.push((index, 1)),
            }
        }
    }
    pauses.retain(|(_, length)| *length > 1);
    pauses
}

fn packets(guest: &mut Guest, device: &str) -> Result<u64> {
    let path = format!("/sys/class/net/{device}/statistics/tx_packets");
    Ok(guest.run(&format!("cat {path}"))?.trim().parse()?)
}

/// Waits until [`PACKETS`] packets have left by the PCI Express NIC while the standby sent at most
/// [`OTHERS_MAX`].
fn wait_primary(guest: &mut Guest) -> Result<()> {
    let read = |guest: &mut Guest| -> Result<[u64; 2]> {
        Ok([packets(guest, "eth1")?, packets(guest, "eth2")?])
    };
    let mut before = read(guest)?;
    let mut after = before;
    wait_until("packets by the NIC only", LIMIT, || {
        after = read(guest)?;
        if after[0] - before[0] > OTHERS_MAX {
            before = after;
        }
        Ok(after[1] - before[1] >= PACKETS)
    })
    .with_context(|| format!("standby and NIC: {before:?}, then {after:?}"))
}

/// Waits until the namespace's connections have carried a further million bytes.
fn wait_flow(world: &Namespace, condition: &str) -> Result<()> {
    let bytes = || Ok::<u64, anyhow::Error>(iperf::carried(world)?.values().sum());
    let before = bytes()?;
    // More than the control connection carries.
    wait_until(condition, LIMIT, || Ok(bytes()? > before + 1_000_000))
}

fn tcp_to_a_guest_survives_plug_and_unplug_of_a_vf() {
    Rig::run(|rig| keep_tcp_over_vf_changes(rig, &["--reverse"]));
}

mod full {
    #[test]
    fn tcp_in_both_directions_survives_plug_and_unplug_of_a_vf() {
        suimon_rig::Rig::run(|rig| super::keep_tcp_over_vf_changes(rig, &["", "--reverse"]));
    }

    #[test]
    fn tcp_to_a_guest_survives_plug_and_unplug_of_a_vf() {
        super::tcp_to_a_guest_survives_plug_and_unplug_of_a_vf();
    }
}

/// Changes the paths during a connection in each of these directions, given as options of iperf3.
fn keep_tcp_over_vf_changes(rig: &Rig, directions: &[&str]) -> Result<()> {
    let adapter = Adapter::new(rig)?;
    let socket = rig.path("web.sock");
    let daemon = Daemon::start(
        rig,
        &format!(
            "[[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"up\"\n\
             [[uplink]]\nname = \"up\"\ndevice = \"{}\"\n\
             [[nic]]\nname = \"web\"\nswitch = \"wan\"\nbackend = \"vhost-user\"\n\
             socket = \"{socket}\"\nmac = \"{MAC}\"\n",
            adapter.uplink
        ),
    )?;
    let mut nic = GuestNic::new(&socket, MAC);
    nic.properties = ",failover=on,id=standby0".to_owned();
    let spec = GuestSpec {
        name: "web".to_owned(),
        nics: vec![nic],
        is_machine: true,
        ports: 1,
        ..GuestSpec::default()
    };
    let mut guest = Guest::start(rig, &spec)?;
    daemon.wait_up("nic", "web")?;
    let features = guest.run("cat /sys/bus/virtio/drivers/virtio_net/virtio*/features")?;
    // Feature bit 62 is VIRTIO_NET_F_STANDBY (virtio 1.2, section 5.1.3).
    ensure!(features.as_bytes().get(62) == Some(&b'1'), "no standby: {features}");
    guest.load("e1000e", "")?;
    guest.execute_qmp(
        "netdev_add",
        &json!({ "type": "tap", "id": "vf", "ifname": adapter.tap, "script": "no",
                 "downscript": "no", "vhost": false }),
    )?;
    guest.address("eth0", "10.77.0.1/24")?;
    ensure!(guest.reaches(WORLD)?, "the standby does not carry");
    let _server = iperf::serve(rig, &adapter.world)?;
    for direction in directions {
        let client = format!("iperf3 -c {WORLD} -t 3600 -i 0.1 -b 20M --json {direction}");
        guest.run(&format!("({client} >/tmp/report 2>&1; echo done >/tmp/end) &"))?;
        wait_flow(&adapter.world, "the connection with the standby alone")?;
        // As with a VF, the adapter has the address from before the guest has the NIC until the
        // guest has released it.
        adapter.set_egress(&adapter.tap)?;
        plug(&mut guest, "the NIC to be added")?;
        wait_primary(&mut guest)?;
        wait_flow(&adapter.world, "the connection with the NIC")?;
        unplug(&mut guest)?;
        adapter.set_egress(&adapter.uplink_port)?;
        wait_flow(&adapter.world, "the connection with the standby again")?;
        guest.run("[ ! -e /tmp/end ] && killall -INT iperf3")?;
        wait_until("the client to have ended", LIMIT, || {
            Ok(guest.run_any("[ -e /tmp/end ]", LIMIT)?.is_ok())
        })?;
        let report = iperf::report_until_ended(&guest.run("cat /tmp/report; rm /tmp/end")?)?;
        // The duration of a change depends on the speed of the emulated guest.
        println!(
            "{direction:>9}: pauses {:?}, longest {:?}, {} segments sent again, {:.0} Mb/s",
            pauses(&report.json),
            report.longest_pause()?,
            report.retransmits,
            report.bits_per_second / 1e6
        );
        ensure!(guest.reaches(WORLD)?, "{direction}: the standby does not carry any more");
    }
    daemon.json(&["nic", "show", "web"]).map(drop).context("the daemon has ended")
}
