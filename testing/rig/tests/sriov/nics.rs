//! NICs with virtual functions: Suimon in an emulated machine with an SR-IOV adapter, namespace
//! guests on a VF and on the switch, and a VM whose NIC has both paths.
//!
//! QEMU emulates the machine with TCG, including the nested virtualization. The tests verify
//! function, not speed. `SUIMON_VF_DEATHS` sets the number of kills of the daemon while a VM uses a
//! VF (1).
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use suimon_rig::{IovMachine, IovSpec, Rig, iperf, wait_until};

const LIGHT: &str = "10.77.0.3";
const NESTED: &str = "10.77.0.1";
/// Time limit for booting the nested VM, which takes half a minute on an idle host; it has its VF
/// afterwards.
const BOOT_LIMIT: Duration = Duration::from_secs(900);
/// Time limit for the guest to use or release a VF.
const PLUG_LIMIT: Duration = Duration::from_secs(600);
/// Number of 2 MiB pages for the VM, with some in reserve. `igb` of QEMU 10.0 drops a frame of a VF
/// if one of its buffers is in pages that are not contiguous in the machine's memory
/// (`net_tx_pkt_add_raw_fragment_pci`); TCP would send the same buffer again and again.
const HUGE_PAGES: u32 = 132;
/// Minimum number of bytes in each direction that shows that TCP continues: those of half a second.
const CARRIED_MIN: u64 = 30_000;

fn json(machine: &mut IovMachine, arguments: &str) -> Result<Value> {
    let output = machine.suimon_well(&format!("{arguments} --json"))?;
    serde_json::from_str(&output).with_context(|| format!("`suimon {arguments}` printed {output}"))
}

/// Host file with a switch with `iov` on the adapter, and a namespace guest.
const HOST: &str = r#"
[[switch]]
name = "wan"
kind = "external"
uplink = "up"
iov = true
[[uplink]]
name = "up"
device = "eth0"
[[pf]]
name = "wan"
device = "eth0"
vfs = 2
[[nic]]
name = "light"
switch = "wan"
backend = "tap"
device = "light0"
netns = "blue"
mac = "52:54:00:00:00:03"
"#;

/// Addition to the host file: a VM on the switch, with VFs.
const VM: &str = r#"
[[nic]]
name = "web"
switch = "wan"
backend = "vhost-user"
mac = "52:54:00:00:00:01"
iov_weight = 50
[[vm]]
name = "web"
memory_bytes = "256 MiB"
nics = ["web"]
accelerator = "kvm"
huge_pages = true
kernel = "/boot/vmlinuz"
initrd = "/boot/initrd"
command_line = "console=ttyS0 quiet panic=-1 random.trust_cpu=on no_timer_check rdinit=/nested"
"#;

fn start(rig: &Rig, hosts_vms: bool) -> Result<IovMachine> {
    let spec = IovSpec { has_iommu: true, hosts_vms, adapters: 1 };
    let mut machine = IovMachine::start(rig, spec)?;
    machine.start_daemon()?;
    machine.run("/usr/bin/ip netns add blue; /usr/bin/ip netns add red")?;
    machine.run("/usr/bin/ip link set eth0 up")?;
    if hosts_vms {
        let file = "/proc/sys/vm/nr_hugepages";
        machine.run(&format!("echo {HUGE_PAGES} >{file}; grep -w {HUGE_PAGES} {file}"))?;
    }
    let host = if hosts_vms { format!("{HOST}{VM}") } else { HOST.to_owned() };
    machine.write("/tmp/host.toml", &host)?;
    machine.suimon_well("apply -f /tmp/host.toml")?;
    machine.run(&format!(
        "/usr/bin/ip -n blue addr add {LIGHT}/24 dev light0; /usr/bin/ip -n blue link set light0 up"
    ))?;
    // Changing the number of VFs resets the adapter; its link is then down for some seconds.
    machine.run("until [ \"$(cat /sys/class/net/eth0/carrier)\" = 1 ]; do usleep 100000; done")?;
    Ok(machine)
}

fn wait_path(machine: &mut IovMachine, path: &str, limit: Duration) -> Result<Value> {
    let until = Instant::now() + limit;
    loop {
        let nic = json(machine, "nic show web")?;
        if nic["iov"]["path"] == path {
            return Ok(nic);
        }
        if Instant::now() > until {
            let log =
                machine.run("tail -5 /tmp/suimon.log; cat /run/suimon/vms/web/*.log | tail")?;
            bail!("not on {path}: {}; {log}", nic["iov"]);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Waits until an address replies to a namespace. A reply may take seconds in an emulated machine.
fn wait_ping(machine: &mut IovMachine, namespace: &str, address: &str) -> Result<()> {
    let until = Instant::now() + PLUG_LIMIT;
    let ping = format!("/usr/bin/ip netns exec {namespace} ping -c 1 -W 10 {address}");
    while !machine.run_any(&ping, PLUG_LIMIT)?.is_ok() {
        ensure!(Instant::now() < until, "{address} does not reply to namespace {namespace}");
    }
    Ok(())
}

/// Waits until exactly this many events about changes to a VF and to the switch are recorded.
/// Events are recorded after the path changes.
fn wait_path_events(
    machine: &mut IovMachine,
    on_vf_count: usize,
    on_switch_count: usize,
) -> Result<()> {
    let mut events = String::new();
    wait_until("an event of each change of path", PLUG_LIMIT, || {
        events = machine.suimon_well("event list")?;
        let number = |id: &str| events.matches(id).count();
        Ok((number(" 9008 info"), number(" 9009 info")) == (on_vf_count, on_switch_count))
    })
    .with_context(|| events.clone())
}

/// Starts TCP in both directions between the namespace guest and the VM. Blocks are small, so that
/// each interval has several, and buffers are small, so that missing data is noticed.
fn begin_tcp(machine: &mut IovMachine) -> Result<()> {
    machine.run(&format!(
        "rm -f /tmp/end; (/usr/bin/ip netns exec blue iperf3 -c {NESTED} --bidir -t 3600 -i 0.5 \
         -b 500K -l 2K -w 16K -J >/tmp/report 2>&1; echo done >/tmp/end) & sleep 4"
    ))?;
    wait_flow(machine)
}

/// Waits until TCP has carried [`CARRIED_MIN`] further bytes in each direction.
fn wait_flow(machine: &mut IovMachine) -> Result<()> {
    let until = Instant::now() + PLUG_LIMIT;
    let byte_counts = |machine: &mut IovMachine| -> Result<[u64; 2]> {
        let counters = json(machine, "nic show light")?["counters"].take();
        let bytes = ["rx_bytes", "tx_bytes"].map(|key| counters[key].as_u64());
        Ok([bytes[0].context("rx_bytes")?, bytes[1].context("tx_bytes")?])
    };
    let before = byte_counts(machine)?;
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let bytes = byte_counts(machine)?;
        let is_enough =
            |(current, previous): (u64, u64)| current.saturating_sub(previous) >= CARRIED_MIN;
        if bytes.into_iter().zip(before).all(is_enough) {
            return Ok(());
        }
        ensure!(Instant::now() < until, "TCP does not continue: {before:?}, then {bytes:?}");
    }
}

/// Waits until TCP continues, ends it, and returns the longest time without data.
fn end_tcp(machine: &mut IovMachine) -> Result<Duration> {
    wait_flow(machine)?;
    ensure!(!machine.run_any("cat /tmp/end", PLUG_LIMIT)?.is_ok(), "the connection was cut");
    machine.run("killall iperf3; while [ ! -e /tmp/end ]; do usleep 100000; done")?;
    iperf::report_until_ended(&machine.run("cat /tmp/report")?)?.longest_pause()
}

/// Kills and restarts the daemon. Returns the longest time in which the VM did not reply over its
/// VF.
fn kill_and_measure_return(machine: &mut IovMachine) -> Result<Duration> {
    machine.run(&format!(
        "(/usr/bin/ip netns exec blue ping -i 0.2 {NESTED} | while read -r line; do case $line in \
         *seq=*) read -r now rest </proc/uptime; echo $now;; esac; done >/tmp/pings) & sleep 2"
    ))?;
    let last = "tail -n 1 /tmp/pings";
    machine.kill_daemon()?;
    let before = machine.run(last)?;
    machine.start_daemon()?;
    let until = Instant::now() + PLUG_LIMIT;
    while machine.run(last)? == before {
        ensure!(Instant::now() < until, "the VM is not reached over its VF after {before}");
        std::thread::sleep(Duration::from_millis(500));
    }
    wait_path(machine, "vf", PLUG_LIMIT)?;
    // The shell prints the end of background jobs at any time.
    machine.run("killall ping; sleep 1")?;
    let longest = "awk 'NR > 1 && $1 - last > most { most = $1 - last } { last = $1 } \
                   END { print most }' /tmp/pings";
    let output = machine.run(longest)?;
    Ok(Duration::from_secs_f64(output.trim().parse().with_context(|| output.clone())?))
}

fn a_light_guest_on_a_vf_and_one_on_the_switch_reach_each_other() {
    Rig::run(reach_each_other);
}

fn reach_each_other(rig: &Rig) -> Result<()> {
    let mut machine = start(rig, false)?;
    let vf = json(&mut machine, "vf show eth0 1")?;
    let device = vf["device"].as_str().context("the VF has no device")?.to_owned();
    machine.run(&format!(
        "/usr/bin/ip link set eth0 vf 1 mac 52:54:00:00:00:07; \
         /usr/bin/ip link set {device} netns red; \
         /usr/bin/ip -n red addr add 10.77.0.7/24 dev {device}; \
         /usr/bin/ip -n red link set {device} up"
    ))?;
    // The adapter forwards frames to the addresses of the switch's NICs.
    wait_ping(&mut machine, "red", LIGHT)?;
    let output = machine.run("/usr/bin/ip netns exec blue ping -c 5 -W 30 10.77.0.7")?;
    ensure!(output.contains(" 0% packet loss"), "{output}");
    // Disabling `iov` removes the NICs' addresses from the adapter, and enabling it adds them
    // again.
    machine.suimon_well("switch set wan --iov=false")?;
    machine.suimon_well("switch set wan --iov")?;
    let output = machine.run(&format!("/usr/bin/ip netns exec red ping -c 5 -W 30 {LIGHT}"))?;
    ensure!(output.contains(" 0% packet loss"), "{output}");
    Ok(())
}

/// Nested VMs in an emulated machine take minutes.
mod full {
    #[test]
    fn a_vm_gets_a_vf_loses_it_and_gets_it_again_while_tcp_continues() {
        suimon_rig::Rig::run(super::have_leave_and_have_again);
    }

    #[test]
    fn a_light_guest_on_a_vf_and_one_on_the_switch_reach_each_other() {
        super::a_light_guest_on_a_vf_and_one_on_the_switch_reach_each_other();
    }
}

fn have_leave_and_have_again(rig: &Rig) -> Result<()> {
    let mut machine = start(rig, true)?;
    machine.suimon_well("vm start web")?;
    let nic = wait_path(&mut machine, "vf", BOOT_LIMIT)?;
    println!("the VM has a VF: {}", nic["iov"]);
    let vfs = json(&mut machine, "vf show eth0")?;
    let index = nic["iov"]["vf"].as_u64().context("a VF")?;
    let vf = vfs["vfs"].get(usize::try_from(index)?).context("no such VF")?;
    assert_eq!((&vf["used_by"], &vf["driver"]), (&"nic/web of vm/web".into(), &"vfio-pci".into()));
    assert_eq!(vf["mac"], "52:54:00:00:00:01");
    // QEMU runs as an unprivileged user in its sandbox and has the VF's group open.
    let process = json(&mut machine, "vm show web")?["process"].as_u64().context("a process")?;
    let output = machine.run(&format!(
        "ls -ln /dev/vfio; grep -E 'Uid|CapEff|NoNewPrivs|Seccomp:' /proc/{process}/status; \
         grep locked /proc/{process}/limits; ls -l /proc/{process}/fd | grep -c vfio"
    ))?;
    println!("{output}");
    ensure!(
        output.contains("Seccomp:\t2") && output.contains("CapEff:\t0000000000000000"),
        "{output}"
    );
    wait_ping(&mut machine, "blue", NESTED)?;
    begin_tcp(&mut machine)?;
    machine.suimon_well("nic set web --iov-weight 0")?;
    let is_without_vf = |machine: &mut IovMachine| -> Result<bool> {
        Ok(json(machine, "nic show web")?.get("iov").is_none())
    };
    let until = Instant::now() + PLUG_LIMIT;
    while !is_without_vf(&mut machine)? {
        ensure!(Instant::now() < until, "the guest does not release its VF");
        std::thread::sleep(Duration::from_secs(1));
    }
    println!("the VM has no VF any more");
    machine.suimon_well("nic set web --iov-weight 50")?;
    wait_path(&mut machine, "vf", PLUG_LIMIT)?;
    println!("TCP paused for {:?} on its way to the switch and back", end_tcp(&mut machine)?);
    let deaths = std::env::var("SUIMON_VF_DEATHS").map_or(1, |text| text.parse().unwrap());
    // The length of a pause depends on the CPU time that the machine gets, so it is only printed.
    for _ in 0..deaths {
        begin_tcp(&mut machine)?;
        let pause = kill_and_measure_return(&mut machine)?;
        let of_tcp = end_tcp(&mut machine)?;
        println!("the daemon died: no ping for {pause:?}, no TCP for {of_tcp:?}");
    }
    println!("{}", machine.run("tail -12 /run/suimon/vms/web/console.log")?);
    // The VF was assigned, removed and assigned again, and stayed while daemons were killed.
    wait_path_events(&mut machine, 2, 1)?;
    machine.suimon_well("vm kill web")?;
    let until = Instant::now() + PLUG_LIMIT;
    while json(&mut machine, "vf show eth0")?["vfs_in_use"] != 0 {
        ensure!(Instant::now() < until, "the VF is still in use");
        std::thread::sleep(Duration::from_secs(1));
    }
    let host_status = machine.suimon_well("host show")?;
    ensure!(!host_status.contains("denied system calls"), "{host_status}");
    Ok(())
}
