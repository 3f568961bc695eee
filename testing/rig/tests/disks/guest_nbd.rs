//! A disk over NBD with the client of the Linux kernel: in a VM, over its NIC and a switch of
//! Suimon.

use std::net::TcpListener;
use std::time::Duration;

use suimon_rig::{Daemon, Guest, GuestNic, GuestSpec, HostDevice, Rig, system_program, wait_until};

const VM_MAC: &str = "52:54:00:aa:00:01";
const HOST: &str = "10.77.0.254";
const VM: &str = "10.77.0.9";
const DISK_BYTES: u64 = 64 << 20;
/// Event id: an NBD client was rejected.
const CLIENT_REFUSED: u32 = 6114;
const PATIENCE: Duration = Duration::from_secs(240);

fn host(rig: &Rig, device: &str, socket: &str) -> String {
    let store = rig.path("store");
    std::fs::create_dir_all(&store).unwrap();
    format!(
        "[[switch]]\nname = \"inside\"\nkind = \"internal\"\nhost_device = \"{device}\"\n\
         [[nic]]\nname = \"vm\"\nswitch = \"inside\"\nbackend = \"vhost-user\"\n\
         socket = \"{socket}\"\nmac = \"{VM_MAC}\"\n\
         [[store]]\nname = \"s\"\npath = \"{store}\"\n\
         [[disk]]\nname = \"data\"\nstore = \"s\"\nformat = \"vhdx\"\nsize_bytes = {DISK_BYTES}\n"
    )
}

/// Returns a port that is currently unused.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a VM with the NBD client's tools and assigns its address.
fn vm(rig: &Rig, socket: &str) -> Guest {
    let programs = ["nbd-client", "mkfs.ext4", "e2fsck", "fio"];
    let spec = GuestSpec {
        name: "vm".to_owned(),
        nics: vec![GuestNic::new(socket, VM_MAC)],
        programs: programs.map(|name| system_program(name).unwrap()).to_vec(),
        cpus: 1,
        memory_mib: 512,
        ..GuestSpec::default()
    };
    let mut vm = Guest::start(rig, &spec).unwrap();
    vm.address("eth0", &format!("{VM}/24")).unwrap();
    vm.load("nbd", "nbds_max=1").unwrap();
    vm
}

fn a_vm_uses_a_disk_over_the_switch_with_the_kernels_client() {
    let rig = Rig::new().unwrap();
    let (device, socket) = (HostDevice::new(&rig), rig.path("vm.sock"));
    let daemon = Daemon::start(&rig, &host(&rig, device.name(), &socket)).unwrap();
    device.address(HOST, VM).unwrap();
    let mut vm = vm(&rig, &socket);
    daemon.wait_up("nic", "vm").unwrap();

    let port = free_port();
    let offer = |addresses: &str| {
        let (listen, addresses) =
            (format!("--nbd-listen={HOST}:{port}"), format!("--nbd-addresses={addresses}"));
        daemon.ok(&["disk", "set", "data", &listen, &addresses, "--nbd-plaintext"]).unwrap();
    };
    let connect = format!("nbd-client {HOST} {port} /dev/nbd0 -N data -C 2 -b 4096");
    offer("192.0.2.0/24");
    assert!(
        !vm.run_any(&connect, PATIENCE).unwrap().is_ok(),
        "a client with another address was admitted"
    );
    wait_until("the event of the rejected client", PATIENCE, || {
        let events = daemon.json(&["event", "list"])?;
        let mut rejections =
            events.as_array().into_iter().flatten().filter(|event| event["id"] == CLIENT_REFUSED);
        Ok(rejections.any(|event| event["text"].to_string().contains(VM)))
    })
    .unwrap();
    offer(VM);
    let mut run = |command: &str| {
        let output = vm.run_any(command, PATIENCE).unwrap();
        assert!(output.is_ok(), "{command}: {}", output.stdout);
        output.stdout
    };
    run(&connect);
    assert_eq!(run("cat /sys/block/nbd0/size"), (DISK_BYTES / 512).to_string());
    run("mkfs.ext4 -q /dev/nbd0 && mkdir /mnt && mount /dev/nbd0 /mnt");
    run("fio --name=job --filename=/mnt/file --ioengine=libaio --direct=1 --rw=randwrite --bs=4k \
         --iodepth=16 --fsync=16 --size=8m --verify=crc32c --output-format=terse");
    run("md5sum /mnt/file >/tmp/sum && umount /mnt && e2fsck -fn /dev/nbd0");
    run("nbd-client -d /dev/nbd0");
    // A new connection returns the written data.
    run(&connect);
    run("mount /dev/nbd0 /mnt && md5sum -c /tmp/sum && umount /mnt");
    run("blkdiscard /dev/nbd0 && nbd-client -d /dev/nbd0");

    let kinds = ["reads", "writes", "flushes", "discards"];
    let mut status = serde_json::Value::Null;
    let counted = wait_until("requests of each kind in the counters", PATIENCE, || {
        status = daemon.json(&["disk", "show", "data"])?;
        Ok(kinds.iter().all(|kind| status["counters"][kind]["requests"].as_u64() > Some(0)))
    });
    counted.unwrap_or_else(|error| panic!("{error:#}: {status}"));
    for kind in kinds {
        assert_eq!(status["counters"][kind]["errors"], 0, "{kind}: {status}");
    }
}

mod full {
    #[test]
    fn a_vm_uses_a_disk_over_the_switch_with_the_kernels_client() {
        super::a_vm_uses_a_disk_over_the_switch_with_the_kernels_client();
    }
}
