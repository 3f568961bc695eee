//! A VM that libvirt starts, with the NICs and disks that `suimon vm xml` prints for it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::time::Duration;

use suimon_rig::{Daemon, GuestConsole, HostedVms, NamespaceGuest, Process, Rig, wait_until};

/// User id under which libvirt's driver and QEMU run here (`nobody`, `nogroup`); on Debian it is
/// `libvirt-qemu`, which the distribution's packages of libvirt create.
const USER: u32 = 65534;
const GUEST: &str = "10.77.0.9";
const DISK_BYTES: u64 = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// Host file with every kind of NIC and disk that a VM of libvirt can use.
const HOST: &str = r#"
[host]
vm_folder = "{vms}"
[[switch]]
name = "lan"
kind = "private"
[[nic]]
name = "web"
switch = "lan"
backend = "vhost-user"
socket = "{sockets}/web"
mac = "52:54:00:78:00:01"
queues = 2
[[nic]]
name = "old"
switch = "lan"
backend = "legacy"
socket = "{sockets}/old"
mac = "52:54:00:78:00:02"
[[store]]
name = "s"
path = "{store}"
[[disk]]
name = "web"
store = "s"
format = "vhdx"
size_bytes = 67108864
serial = "OF-WEB"
vhost_user = { socket = "{sockets}/disk" }
[[disk]]
name = "data"
store = "s"
format = "vhdx"
size_bytes = 67108864
controller = "sata"
serial = "OF-DATA"
nbd = { socket = "{sockets}/nbd", users = ["nobody"] }
[[vm]]
name = "web"
memory_bytes = "256 MiB"
nics = ["web", "old"]
disks = ["web", "data"]
"#;

/// Complete domain. QEMU 7.2 without KVM crashes on vhost-user devices with MSI-X, so these have
/// none.
const DOMAIN: &str = "\
<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
<name>web</name><memory unit='MiB'>256</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type>
<kernel>{kernel}</kernel><initrd>{initrd}</initrd>
<cmdline>quiet panic=-1 random.trust_cpu=on no_timer_check console=ttyS0 loglevel=1 line=ttyS0</cmdline></os>
<features><acpi/></features><cpu mode='maximum'/>
{elements}
<qemu:commandline>{legacy}</qemu:commandline>
<qemu:override>
<qemu:device alias='net0'><qemu:frontend>
<qemu:property name='vectors' type='unsigned' value='0'/></qemu:frontend></qemu:device>
<qemu:device alias='virtio-disk0'><qemu:frontend>
<qemu:property name='vectors' type='unsigned' value='0'/></qemu:frontend></qemu:device>
</qemu:override>
</domain>";

/// Adds a user's element, a console, to the printed elements, and returns the domain.
fn domain(vms: &HostedVms, elements: &str, folder: &str) -> String {
    let devices = format!(
        "<devices>\n<serial type='unix'><source mode='bind' path='{folder}/console.sock'/></serial>"
    );
    // libvirt has no element for one NIC, so the output describes it as command-line arguments.
    let line = elements.lines().find(|line| line.trim().starts_with("netdev")).unwrap();
    let arguments = line.trim().strip_suffix(" -->").unwrap();
    let legacy: String = arguments
        .split(" and ")
        .flat_map(|option| {
            let (name, value) = option.split_once(' ').unwrap();
            [format!("<qemu:arg value='-{name}'/>"), format!("<qemu:arg value='{value}'/>")]
        })
        .collect();
    let elements = elements.replacen("<devices>", &devices, 1);
    vms.fill_in(&DOMAIN.replace("{elements}", &elements).replace("{legacy}", &legacy))
}

/// Creates a folder for the user of libvirt and its QEMU, and returns its path.
fn folder_of_user(rig: &Rig, name: &str) -> String {
    let folder = rig.path(name);
    fs::create_dir_all(&folder).unwrap();
    chown(&folder, Some(USER), Some(USER)).unwrap();
    folder
}

fn start(rig: &Rig, domain: &str, folder: &str) -> Process {
    fs::create_dir_all(format!("{folder}/etc")).unwrap();
    fs::write(format!("{folder}/etc/qemu.conf"), "stdio_handler = \"file\"\n").unwrap();
    let file = rig.path("domain.xml");
    fs::write(&file, domain).unwrap();
    let user = USER.to_string();
    let arguments = [
        "setpriv",
        &format!("--reuid={user}"),
        &format!("--regid={user}"),
        "--clear-groups",
        "virt-qemu-run",
        "--verbose",
        &format!("--root={folder}"),
        &file,
    ];
    let home = [("HOME", folder.to_owned()), ("XDG_RUNTIME_DIR", folder.to_owned())];
    Process::start_in(rig, "virt-qemu-run", &arguments, &home).unwrap()
}

fn check_devices(guest: &mut GuestConsole) {
    for module in ["virtio_blk", "e1000e", "sd_mod", "ahci"] {
        guest.load(module, "").unwrap();
    }
    let of_disks = "cat /sys/block/vda/serial /sys/block/vda/size /sys/block/sda/size";
    let sectors = (DISK_BYTES / 512).to_string();
    wait_until("the SATA disk", PATIENCE, || {
        Ok(guest.run_any(of_disks, PATIENCE)?.stdout == format!("OF-WEB{sectors}\n{sectors}"))
    })
    .unwrap();
    let old = "readlink /sys/class/net/eth1/device/driver";
    assert!(guest.run(old).unwrap().ends_with("/e1000e"));
    let addresses = guest.run("cat /sys/class/net/eth0/address /sys/class/net/eth1/address");
    assert_eq!(addresses.unwrap(), "52:54:00:78:00:01\n52:54:00:78:00:02");
}

#[test]
fn libvirt_starts_a_vm_with_our_nics_and_disks() {
    let rig = Rig::new().unwrap();
    let vms = HostedVms::of_machines(&rig).unwrap();
    let peer = NamespaceGuest::new(&rig, "peer", 1).unwrap();
    let (sockets, store) = (folder_of_user(&rig, "sockets"), rig.path("store"));
    fs::set_permissions(&sockets, fs::Permissions::from_mode(0o2770)).unwrap();
    fs::create_dir_all(&store).unwrap();
    let host = HOST.replace("{sockets}", &sockets).replace("{store}", &store);
    let host = host.replace("{vms}", vms.folder());
    let host = host + &peer.nic_toml("lan", "");
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    peer.bring_up().unwrap();

    let folder = folder_of_user(&rig, "libvirt");
    let domain = domain(&vms, &daemon.ok(&["vm", "xml", "web"]).unwrap(), &folder);
    let mut libvirt = start(&rig, &domain, &folder);
    wait_until("libvirt to report a running guest", PATIENCE, || {
        libvirt.check_running()?;
        Ok(libvirt.log().contains("guest running"))
    })
    .unwrap();
    let mut guest = GuestConsole::on("web", &folder).unwrap();
    check_devices(&mut guest);
    guest.run("echo kept | dd of=/dev/vda bs=512 conv=sync,fsync").unwrap();
    guest.run("echo also | dd of=/dev/sda bs=512 conv=sync,fsync").unwrap();
    guest.address("eth0", &format!("{GUEST}/24")).unwrap();
    assert!(guest.reaches(&peer.address()).unwrap());

    // QEMU connects to the next daemon as the elements specify.
    daemon.restart(&rig).unwrap();
    wait_until("the reply of the peer", PATIENCE, || guest.reaches(&peer.address())).unwrap();
    for (device, disk, content) in [("vda", "web", "kept"), ("sda", "data", "also")] {
        let read =
            format!("dd if=/dev/{device} bs=512 count=1 iflag=direct 2>/dev/null | head -c 4");
        // libvirt before 9.1 cannot make QEMU wait for an emulated disk's server: a request on the
        // broken connection fails, and makes QEMU reconnect.
        let condition = format!("what was written to {device}");
        wait_until(&condition, PATIENCE, || Ok(guest.run(&read)? == content)).unwrap();
        // The counters begin at zero when the daemon starts.
        let read = || daemon.json(&["disk", "show", disk]);
        let is_counted = || Ok(read()?["counters"]["reads"]["bytes"].as_u64() > Some(0));
        wait_until("the reads in the counters", PATIENCE, is_counted)
            .unwrap_or_else(|error| panic!("{error:#}: {:?}", read()));
    }
    libvirt.stop().unwrap();
}
