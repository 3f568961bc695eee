//! A VM's NICs and disks as elements of a libvirt domain, for those who start VMs with
//! libvirt (<https://libvirt.org/formatdomain.html>: "vhost-user interface", "Hard drives,
//! floppy disks, CDROMs", "Memory Backing").

use core::fmt::Write;
use std::path::Path;

use crate::{HostConfig, SocketMode, VmConfig};

/// The elements `memoryBacking` and `devices` of a domain that has the VM's NICs and disks.
/// Our sockets are where QEMU connects, and connects again after a daemon's death.
pub fn libvirt_elements(config: &HostConfig, vm: &VmConfig) -> String {
    let mut xml = String::from("<memoryBacking>\n");
    if vm.huge_pages {
        xml.push_str("  <hugepages/>\n");
    }
    // A vhost-user back-end maps the guest's memory.
    xml.push_str(
        "  <source type='memfd'/>\n  <access mode='shared'/>\n</memoryBacking>\n<devices>\n",
    );
    for (index, name) in vm.disks.iter().enumerate() {
        let disk = config.disks.iter().find(|disk| disk.name == *name);
        let Some(of) = disk.and_then(|disk| config.vhost_user_of_disk(disk)) else { continue };
        xml.push_str("  <disk type='vhostuser' device='disk'>\n");
        line(&mut xml, 4, &format!("<driver name='qemu' type='raw' queues='{}'/>", of.queues));
        source(&mut xml, "", &of.socket);
        line(&mut xml, 4, &format!("<target dev='{}' bus='virtio'/>", target(index)));
        line(&mut xml, 4, &format!("<boot order='{}'/>", index + 1));
        xml.push_str("  </disk>\n");
    }
    for name in &vm.nics {
        let Some(nic) = config.nics.iter().find(|nic| nic.name == *name) else { continue };
        let Some(socket) = config.socket_of_nic(nic) else { continue };
        xml.push_str("  <interface type='vhostuser'>\n");
        if let Some(mac) = nic.mac {
            line(&mut xml, 4, &format!("<mac address='{mac}'/>"));
        }
        let mode = match nic.socket_mode() {
            Some(SocketMode::Client) => " mode='server'",
            _ => " mode='client'",
        };
        source(&mut xml, mode, &socket);
        line(&mut xml, 4, "<model type='virtio'/>");
        line(&mut xml, 4, &format!("<driver queues='{}'/>", nic.queues));
        line(&mut xml, 4, &format!("<mtu size='{}'/>", nic.mtu));
        xml.push_str("  </interface>\n");
    }
    xml.push_str("</devices>\n");
    xml
}

fn line(xml: &mut String, indent: usize, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(xml, "{:indent$}{text}", "");
}

fn source(xml: &mut String, mode: &str, socket: &Path) {
    let path = escaped(&socket.to_string_lossy());
    line(xml, 4, &format!("<source type='unix' path='{path}'{mode}>"));
    line(xml, 6, "<reconnect enabled='yes' timeout='1'/>");
    line(xml, 4, "</source>");
}

/// `vda`, `vdb`, …; a VM has 16 disks at most.
fn target(index: usize) -> String {
    let letter = u8::try_from(index).ok().and_then(|index| b'a'.checked_add(index));
    format!("vd{}", char::from(letter.unwrap_or(b'z')))
}

fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, c| {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\'' => escaped.push_str("&apos;"),
            c => escaped.push(c),
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::libvirt_elements;
    use crate::parse_toml;

    #[test]
    fn nics_and_disks_are_elements_of_a_domain() {
        let text = r#"
[[switch]]
name = "lan"
kind = "private"
[[nic]]
name = "web"
switch = "lan"
backend = "vhost-user"
mac = "52:54:00:12:34:56"
queues = 2
[[nic]]
name = "odd"
switch = "lan"
backend = "vhost-user"
socket = "/run/it's<odd>&.sock"
[[store]]
name = "fast"
path = "/srv/fast"
[[disk]]
name = "web"
store = "fast"
format = "raw"
[[vm]]
name = "web"
memory_bytes = "1 GiB"
nics = ["web", "odd"]
disks = ["web"]
"#;
        let config = parse_toml(text, None).unwrap();
        insta::assert_snapshot!(libvirt_elements(&config, &config.vms[0]));
    }
}
