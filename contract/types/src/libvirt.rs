//! NICs and disks of a VM as elements of a libvirt domain, for VMs started by libvirt
//! (<https://libvirt.org/formatdomain.html>: "vhost-user interface", "Hard drives, floppy disks,
//! CDROMs", "Memory Backing").

use core::fmt::Write;
use std::path::Path;

use crate::{DiskConfig, DiskController, HostConfig, NicBackend, NicConfig, VmConfig, default_mtu};

/// First PCI slot of emulated NICs. QEMU creates devices of `qemu:commandline` before libvirt's
/// devices, to which libvirt assigns slots from the first one upwards.
const LEGACY_NIC_SLOT: u8 = 0x10;

/// Returns the elements `memoryBacking` and `devices` of a domain with the VM's NICs and disks.
/// QEMU connects to the daemon's sockets, and reconnects after a crash of the daemon.
pub fn libvirt_elements(config: &HostConfig, vm: &VmConfig) -> String {
    let mut xml = String::from("<memoryBacking>\n");
    if vm.huge_pages {
        xml.push_str("  <hugepages/>\n");
    }
    // A vhost-user back-end maps the guest's memory.
    xml.push_str(
        "  <source type='memfd'/>\n  <access mode='shared'/>\n</memoryBacking>\n<devices>\n",
    );
    let disks = vm.disks.iter().map(|name| config.disks.iter().find(|disk| disk.name == *name));
    // Units are counted per emulated controller; the letter of `dev` counts all disks.
    let (mut ide, mut sata) = (0, 0);
    for (index, disk) in disks.enumerate() {
        let Some(disk) = disk else { continue };
        if let Some(of_vm) = config.emulated_disk_socket(disk) {
            // The disk's own socket admits the users it configures, such as libvirt's; the socket
            // in the VM's folder does not.
            let disk_socket = disk.nbd.as_ref().and_then(|nbd| nbd.socket.clone());
            let socket = disk_socket.unwrap_or(of_vm);
            let counter = if disk.controller == DiskController::Ide { &mut ide } else { &mut sata };
            emulated_disk(&mut xml, disk, &socket, (*counter, index + 1));
            *counter += 1;
            continue;
        }
        let Some(vhost_user) = config.vhost_user_of_disk(disk) else { continue };
        xml.push_str("  <disk type='vhostuser' device='disk'>\n");
        line(
            &mut xml,
            4,
            &format!("<driver name='qemu' type='raw' queues='{}'/>", vhost_user.queues),
        );
        source(&mut xml, "", &vhost_user.socket);
        line(&mut xml, 4, &format!("<target dev='vd{}' bus='virtio'/>", letter(index)));
        line(&mut xml, 4, &format!("<boot order='{}'/>", index + 1));
        xml.push_str("  </disk>\n");
    }
    let mut slot = LEGACY_NIC_SLOT;
    for name in &vm.nics {
        let Some(nic) = config.nics.iter().find(|nic| nic.name == *name) else { continue };
        let Some(socket) = config.socket_of_nic(nic) else { continue };
        if nic.backend == NicBackend::Legacy {
            legacy_nic(&mut xml, nic, &socket, slot);
            slot += 1;
            continue;
        }
        xml.push_str("  <interface type='vhostuser'>\n");
        if let Some(mac) = nic.mac {
            line(&mut xml, 4, &format!("<mac address='{mac}'/>"));
        }
        // Validation rejects VM NICs in client mode.
        source(&mut xml, " mode='client'", &socket);
        line(&mut xml, 4, "<model type='virtio'/>");
        line(&mut xml, 4, &format!("<driver queues='{}'/>", nic.queues));
        if nic.mtu != default_mtu() {
            // libvirt applies an `mtu` element to an Open vSwitch port, which fails here.
            let comment = format!("<!-- set the MTU in the guest to {} -->", nic.mtu);
            line(&mut xml, 4, &comment);
        }
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

/// Writes a disk emulated by QEMU and accessed over NBD ("network" disks in `formatdomain.html`).
/// The reconnect timeout cannot be set: libvirt 9.0 (Debian 12) rejects the attribute during
/// validation.
fn emulated_disk(
    xml: &mut String,
    disk: &DiskConfig,
    socket: &Path,
    (index, order): (usize, usize),
) {
    let (letters, bus) = match disk.controller {
        DiskController::Ide => ("hd", "ide"),
        DiskController::Sata | DiskController::Virtio => ("sd", "sata"),
    };
    let path = escaped(&socket.to_string_lossy());
    xml.push_str("  <disk type='network' device='disk'>\n");
    line(xml, 4, "<driver name='qemu' type='raw'/>");
    line(xml, 4, &format!("<source protocol='nbd' name='{}'>", disk.name));
    line(xml, 6, &format!("<host transport='unix' socket='{path}'/>"));
    line(xml, 6, "<!-- libvirt after 9.0 takes <reconnect delay='600'/> here: while no daemon is");
    line(
        xml,
        6,
        "     there, the guest's requests wait as many seconds, and do not fail at once. -->",
    );
    line(xml, 4, "</source>");
    line(xml, 4, &format!("<target dev='{letters}{}' bus='{bus}'/>", letter(index)));
    let serial = disk.effective_serial();
    if serial.chars().all(|c| c.is_ascii_alphanumeric() || "_.+- ".contains(c)) {
        line(xml, 4, &format!("<serial>{serial}</serial>"));
    } else {
        line(xml, 4, "<!-- its serial number has characters that libvirt refuses -->");
    }
    line(xml, 4, &format!("<boot order='{order}'/>"));
    xml.push_str("  </disk>\n");
}

/// Writes a NIC on a stream socket as QEMU command-line arguments, since libvirt has no element for
/// it.
fn legacy_nic(xml: &mut String, nic: &NicConfig, socket: &Path, slot: u8) {
    // Two commas represent one in QEMU's lists; two hyphens would end the XML comment.
    let path = socket.to_string_lossy().replace(',', ",,");
    let mac = nic.mac.map(|mac| format!(",mac={mac}")).unwrap_or_default();
    let comment = format!(
        "netdev stream,id={0},server=off,addr.type=unix,addr.path={path} and \
         device e1000e,netdev={0}{mac},addr={slot:#x}",
        nic.name
    );
    let comment = escaped(&comment).replace("--", "- -");
    xml.push_str("  <!-- libvirt has no element for a NIC on a stream socket. In the namespace\n");
    xml.push_str("       qemu:commandline, with one hyphen before the first word of each:\n");
    line(xml, 7, &format!("{comment} -->"));
}

/// Returns the device letter of the index: `a`, `b`, and so on. A VM has at most 16 disks.
fn letter(index: usize) -> char {
    let letter = u8::try_from(index).ok().and_then(|index| b'a'.checked_add(index));
    char::from(letter.unwrap_or(b'z'))
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
[[nic]]
name = "old"
switch = "lan"
backend = "legacy"
mac = "52:54:00:12:34:57"
[[store]]
name = "fast"
path = "/srv/fast"
[[disk]]
name = "web"
store = "fast"
format = "raw"
[[disk]]
name = "boot"
store = "fast"
format = "vhdx"
controller = "ide"
[[disk]]
name = "data"
store = "fast"
format = "vhdx"
controller = "sata"
nbd.socket = "/run/nbd.sock"
[[vm]]
name = "web"
memory_bytes = "1 GiB"
nics = ["web", "odd", "old"]
disks = ["web", "boot", "data"]
"#;
        let config = parse_toml(text, None).unwrap();
        insta::assert_snapshot!(libvirt_elements(&config, &config.vms[0]));
    }
}
