//! Tests that the elements printed for libvirt are valid against libvirt's own schema of a domain.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use suimon_contract::{HostConfig, libvirt_elements, parse_toml};

const SCHEMA: &str = "/usr/share/libvirt/schemas/domain.rng";

/// Host file with every kind of NIC, disk and memory for which different elements are printed.
const HOST: &str = r#"
[[switch]]
name = "lan"
kind = "private"
[[nic]]
name = "plain"
switch = "lan"
backend = "vhost-user"
[[nic]]
name = "full"
switch = "lan"
backend = "vhost-user"
mac = "52:54:00:12:34:56"
queues = 4
mtu = 9000
socket = "/run/it's<odd>&\".sock"
[[nic]]
name = "old"
switch = "lan"
backend = "legacy"
mac = "52:54:00:12:34:57"
[[nic]]
name = "older"
switch = "lan"
backend = "legacy"
socket = "/run/o--ld,->.sock"
[[store]]
name = "fast"
path = "/srv/fast"
[[disk]]
name = "plain"
store = "fast"
format = "raw"
[[disk]]
name = "full"
store = "fast"
format = "vhdx"
read_only = true
serial = "OF FULL"
vhost_user = { socket = "/run/it's<full>&.sock", queues = 4 }
[[disk]]
name = "boot"
store = "fast"
format = "vhdx"
controller = "ide"
serial = "<'&\">"
[[disk]]
name = "data"
store = "fast"
format = "vhdx"
controller = "sata"
nbd.socket = "/run/n&<bd>.sock"
[[vm]]
name = "virtio"
memory_bytes = "1 GiB"
nics = ["plain", "full"]
disks = ["plain", "full"]
huge_pages = true
[[vm]]
name = "uefi"
memory_bytes = "1 GiB"
firmware = "uefi"
cdrom = "/srv/installer.iso"
[[vm]]
name = "emulated"
memory_bytes = "64 MiB"
nics = ["old", "older"]
disks = ["boot", "data"]
[[vm]]
name = "bare"
memory_bytes = "16 MiB"
kernel = "/srv/vmlinuz"
"#;

/// Returns a minimal libvirt domain that contains `elements`.
fn domain(elements: &str) -> String {
    format!(
        "<domain type='kvm'>\n<name>of</name>\n<memory unit='MiB'>64</memory>\n\
         <os><type arch='x86_64' machine='q35'>hvm</type></os>\n{elements}</domain>\n"
    )
}

/// Returns libvirt's errors about a domain; `None` if it is valid.
fn refusal(domain: &str) -> Option<String> {
    assert!(Path::new(SCHEMA).is_file(), "libvirt0 is not installed; run `make setup`");
    let mut lint = Command::new("xmllint")
        .args(["--noout", "--nonet", "--relaxng", SCHEMA, "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("libxml2-utils is not installed; run `make setup`");
    lint.stdin.take().unwrap().write_all(domain.as_bytes()).unwrap();
    let output = lint.wait_with_output().unwrap();
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

fn host() -> HostConfig {
    parse_toml(HOST, None).unwrap()
}

#[test]
fn libvirts_schema_accepts_all_nics_and_disks() {
    let host = host();
    for vm in &host.vms {
        let domain = domain(&libvirt_elements(&host, vm));
        assert_eq!(refusal(&domain), None, "{domain}");
    }
    let printed = |vm: usize| libvirt_elements(&host, &host.vms[vm]);
    assert_eq!(printed(0).matches("<interface").count(), 2);
    assert_eq!(printed(0).matches("<disk").count(), 2);
    assert!(printed(0).contains("MTU in the guest to 9000"), "{}", printed(0));
    assert_eq!(printed(2).matches("<disk").count(), 2);
    assert_eq!(printed(2).matches("e1000e").count(), 2);
    assert_eq!(printed(2).matches("<serial>data</serial>").count(), 1);
    assert_eq!(printed(2).matches("serial number").count(), 1);
}

#[test]
fn libvirts_schema_refuses_unknown_values() {
    let host = host();
    let right = domain(&libvirt_elements(&host, &host.vms[0]));
    for (old, new) in [("mode='client'", "mode='guest'"), ("queues='4'", "queues='many'")] {
        assert!(right.contains(old), "{right}");
        assert!(refusal(&right.replace(old, new)).is_some(), "{new}");
    }
}
