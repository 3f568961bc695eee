//! SR-IOV adapters: Suimon in an emulated machine with an adapter, with Debian's kernel and
//! drivers. The reports of Suimon are compared with those of `ip` and sysfs.
#![forbid(unsafe_code)]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use suimon_rig::{IovMachine, IovSpec, Rig, wait_until};

/// Deadline of conditions, generous because the machine is emulated.
const LIMIT: Duration = Duration::from_secs(300);

fn json(machine: &mut IovMachine, arguments: &str) -> Result<Value> {
    let output = machine.suimon_well(&format!("{arguments} --json"))?;
    serde_json::from_str(&output).with_context(|| format!("`suimon {arguments}` printed {output}"))
}

/// Returns the line of `ip link show` about a VF.
fn ip_of_vf(machine: &mut IovMachine, index: u16) -> Result<String> {
    let output = machine.run("/usr/bin/ip link show eth0")?;
    let line = output.lines().find(|line| line.trim_start().starts_with(&format!("vf {index} ")));
    Ok(line.with_context(|| format!("no VF {index} in {output}"))?.to_owned())
}

/// Runs `suimon`, which must fail with this exit code and print these texts.
fn expect_error(
    machine: &mut IovMachine,
    arguments: &str,
    code: i32,
    parts: &[&str],
) -> Result<()> {
    let output = machine.suimon(arguments)?;
    ensure!(output.code == code, "`suimon {arguments}`: {} {}", output.code, output.stdout);
    for part in parts {
        ensure!(output.stdout.contains(part), "`suimon {arguments}` printed {}", output.stdout);
    }
    Ok(())
}

fn number_of_vfs(machine: &mut IovMachine) -> Result<String> {
    machine.run("cat /sys/class/net/eth0/device/sriov_numvfs")
}

fn list_enable_set_up_and_keep(rig: &Rig) -> Result<()> {
    let spec = IovSpec { has_iommu: true, hosts_vms: false, adapters: 1 };
    let mut machine = IovMachine::start(rig, spec)?;
    machine.start_daemon()?;
    let adapters = json(&mut machine, "vf list")?;
    let adapter = &adapters[0];
    assert_eq!(adapters.as_array().map(Vec::len), Some(1), "{adapters}");
    assert_eq!(adapter["device"], "eth0");
    assert_eq!(adapter["driver"], "igb");
    assert_eq!(adapter["support"], "Supported");
    assert_eq!((&adapter["vfs_supported"], &adapter["vfs_enabled"]), (&7.into(), &0.into()));

    let plan = machine.suimon_well("vf enable eth0 --count 3 --dry-run")?;
    assert!(plan.contains("pf/eth0 create"), "{plan}");
    assert_eq!(number_of_vfs(&mut machine)?, "0", "a dry run changes nothing");
    machine.suimon_well("vf enable eth0 --count 3")?;
    assert_eq!(number_of_vfs(&mut machine)?, "3");
    let adapter = json(&mut machine, "vf show eth0")?;
    let vfs = adapter["vfs"].as_array().context("VFs")?;
    assert_eq!(vfs.len(), 3);
    for vf in vfs {
        assert_eq!(vf["driver"], "igbvf", "{vf}");
        assert!(vf["iommu_group"].is_u64() && vf["device"].is_string(), "{vf}");
        assert!(vf.get("used_by").is_none(), "{vf}");
    }

    // The adapter accepts a rate limit only while its link is up.
    machine.run("/usr/bin/ip link set eth0 up")?;
    machine.run("until [ \"$(cat /sys/class/net/eth0/carrier)\" = 1 ]; do usleep 100000; done")?;
    machine.suimon_well(
        "vf set eth0 1 mac=52:54:00:00:00:01 vlan=20 spoof_check=off trust=on \
         bandwidth_max_bps=100000000",
    )?;
    let vf_text = ip_of_vf(&mut machine, 1)?;
    for part in ["52:54:00:00:00:01", "vlan 20", "spoof checking off", "trust on", "100Mbps"] {
        assert!(vf_text.contains(part), "{part}: {vf_text}");
    }
    let vf = json(&mut machine, "vf show eth0 1")?;
    assert_eq!((&vf["vlan"], &vf["bandwidth_max_bps"]), (&20.into(), &100_000_000.into()));
    machine.suimon_well("vf set eth0 1 vlan=default spoof_check=on")?;
    let vf_text = ip_of_vf(&mut machine, 1)?;
    assert!(!vf_text.contains("vlan") && vf_text.contains("spoof checking on"), "{vf_text}");

    // Changing the number of VFs resets the adapter; its link is then down for some seconds.
    machine.suimon_well("vf enable eth0 --count 2")?;
    assert_eq!(number_of_vfs(&mut machine)?, "2");
    let vf_text = ip_of_vf(&mut machine, 1)?;
    assert!(vf_text.contains("trust on") && vf_text.contains("100Mbps"), "{vf_text}");
    assert_eq!(json(&mut machine, "pf show eth0")?["condition"]["health"], "up");
    bad_input(&mut machine)?;
    change_by_other_programs(&mut machine)?;
    a_new_daemon(&mut machine)
}

fn bad_input(machine: &mut IovMachine) -> Result<()> {
    let before = number_of_vfs(machine)?;
    let exported = machine.suimon_well("export")?;
    expect_error(machine, "vf enable eth0 --count 8", 3, &["vfs", "7 VFs at most"])?;
    expect_error(machine, "vf enable eth9 --count 1", 4, &["eth9", "suimon vf list"])?;
    expect_error(machine, "vf enable eth0 --count 70000", 2, &["70000"])?;
    expect_error(machine, "vf set eth0 5 trust=on", 3, &["the highest VF is number 1"])?;
    expect_error(machine, "vf set eth0 0 mac=ff:ff:ff:ff:ff:ff", 2, &["mac"])?;
    expect_error(
        machine,
        "vf set eth0 0 link_state=enable",
        3,
        &["link_state", "does not support this setting"],
    )?;
    expect_error(machine, "vf set eth0 0 bandwidth_min_bps=1000000", 3, &["possibly no minimum"])?;
    expect_error(machine, "pf add lo --device lo --vfs 1", 3, &["eth0 (0000:01:00.0)"])?;
    expect_error(machine, "pf add two --device 0000:01:00.0", 3, &["pf/eth0 describes"])?;
    // A VF that is in use cannot be removed: by the host, by a namespace, or bound to the driver
    // for VMs.
    let vf = json(machine, "vf show eth0 0")?;
    let device = vf["device"].as_str().context("a device")?.to_owned();
    let address = vf["address"].as_str().context("an address")?.to_owned();
    let enable = "vf enable eth0 --count 0";
    machine.run(&format!("/usr/bin/ip link set {device} up"))?;
    expect_error(machine, enable, 6, &[&format!("{device} is up")])?;
    machine.run(&format!(
        "/usr/bin/ip link set {device} down; /usr/bin/ip netns add blue; \
         /usr/bin/ip link set {device} netns blue"
    ))?;
    expect_error(
        machine,
        enable,
        6,
        &[&format!("its device {device} is in network namespace blue")],
    )?;
    let vf = json(machine, "vf show eth0 0")?;
    assert_eq!((&vf["netns"], &vf["device"]), (&"blue".into(), &device.as_str().into()));
    let sysfs = format!("/sys/bus/pci/devices/{address}");
    machine.run(&format!(
        "echo vfio-pci >{sysfs}/driver_override; echo {address} >{sysfs}/driver/unbind; \
         echo {address} >/sys/bus/pci/drivers_probe"
    ))?;
    expect_error(machine, enable, 6, &["bound to driver vfio-pci, for a VM"])?;
    machine.run(&format!("echo {address} >{sysfs}/driver/unbind"))?;
    assert_eq!(number_of_vfs(machine)?, before);
    assert_eq!(machine.suimon_well("export")?, exported, "nothing was changed");
    Ok(())
}

/// Changes by other programs are reverted to the configuration, and reported.
fn change_by_other_programs(machine: &mut IovMachine) -> Result<()> {
    machine.run("/usr/bin/ip link set eth0 vf 1 trust off")?;
    machine.run(
        "until /usr/bin/ip link show eth0 | grep -q 'vf 1 .*trust on'; do usleep 200000; done",
    )?;
    // The event is recorded after the adapter is set up.
    let mut events = String::new();
    wait_until("the event of the VF's set-up", LIMIT, || {
        events = machine.suimon_well("event list")?;
        Ok(events.contains("VF 1 of eth0 (0000:01:00.0) was configured: trust true"))
    })
    .with_context(|| events.clone())
}

/// The configuration persists over a restart of the daemon, which restores lost settings.
fn a_new_daemon(machine: &mut IovMachine) -> Result<()> {
    machine.kill_daemon()?;
    machine.run("echo 0 >/sys/class/net/eth0/device/sriov_numvfs")?;
    machine.start_daemon()?;
    assert_eq!(number_of_vfs(machine)?, "2");
    let vf_text = ip_of_vf(machine, 1)?;
    for part in ["52:54:00:00:00:01", "trust on", "100Mbps"] {
        assert!(vf_text.contains(part), "{part}: {vf_text}");
    }
    machine.suimon_well("vf enable eth0 --count 0")?;
    assert_eq!(number_of_vfs(machine)?, "0");
    let exported = machine.suimon_well("export")?;
    assert!(!exported.contains("[[pf.vf]]"), "{exported}");
    let host_status = machine.suimon_well("host show")?;
    assert!(!host_status.contains("denied system calls"), "{host_status}");
    Ok(())
}

mod full {
    #[test]
    fn vfs_are_listed_enabled_set_up_and_kept() {
        suimon_rig::Rig::run(super::list_enable_set_up_and_keep);
    }

    #[test]
    fn an_adapter_without_an_iommu_is_reported_with_the_requirement() {
        suimon_rig::Rig::run(super::report_missing_iommu);
    }
}

fn report_missing_iommu(rig: &Rig) -> Result<()> {
    let spec = IovSpec { has_iommu: false, hosts_vms: false, adapters: 1 };
    let mut machine = IovMachine::start(rig, spec)?;
    machine.start_daemon()?;
    let output = machine.suimon_well("vf list")?;
    assert!(output.contains("NoIoMmuSupport") && output.contains("intel_iommu=on"), "{output}");
    // Namespaces can use VFs without an IOMMU.
    machine.suimon_well("vf enable eth0 --count 1")?;
    assert_eq!(number_of_vfs(&mut machine)?, "1");
    machine.run("echo 0000:01:00.0 >/sys/bus/pci/drivers/igb/unbind")?;
    let output = machine.suimon_well("vf list")?;
    assert!(output.contains("MissingPfDriver") && output.contains("lspci -k"), "{output}");
    expect_error(&mut machine, "vf enable 0000:01:00.0 --count 2", 3, &["MissingPfDriver"])
}
