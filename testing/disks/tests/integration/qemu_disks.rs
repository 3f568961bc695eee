//! Tests of disks of VMs that QEMU runs with Debian's kernel: vhost-user-blk with an independent
//! front-end and driver.

use std::time::Duration;

use crate::served::{MIB, ServedDisk, allocated, guest, tools};
use suimon_rig::{
    Boot, Guest, GuestDisk, GuestDiskInfo, GuestSpec, Rig, make_boot_sector, make_root_disk, run,
    wait_until,
};

/// Deadline of conditions and of commands in a guest.
const PATIENCE: Duration = Duration::from_secs(300);

const EVENT_IDX: u64 = 1 << 29;
const INDIRECT: u64 = 1 << 28;
const PACKED: u64 = 1 << 34;

fn a_guest_sees_the_properties_of_the_disk_with_every_ring_format() {
    let rig = Rig::new().unwrap();
    let small = |name: &str, options: &str| ServedDisk::raw(&rig, name, 64 * MIB, options);
    let plain = small("plain", "--serial SUIMON-0001");
    let many = small("many", "--queues 4 --serial twenty-bytes-of-name");
    let packed = small("packed", "");
    let packed_many = small("packed-many", "--queues 4");
    let minimal = small("bare", "");
    let fixed = small("fixed", "--read-only");
    let large = small("large", "--sector 4096");
    let mut many_disk = many.disk("");
    many_disk.queues = 4;
    let mut packed_many_disk = packed_many.disk(",packed=on");
    packed_many_disk.queues = 4;
    let disks = vec![
        plain.disk(""),
        many_disk,
        packed.disk(",packed=on"),
        packed_many_disk,
        minimal.disk(",event_idx=off,indirect_desc=off"),
        fixed.disk(""),
        large.disk(""),
    ];
    let mut vm = guest(&rig, disks, &[]);
    let disk_info = |serial: &str, queues: usize| GuestDiskInfo {
        bytes: 64 * MIB,
        logical_sector: 512,
        physical_sector: 4096,
        serial: serial.to_owned(),
        is_read_only: false,
        discard_bytes_max: 2 << 30,
        zeroes_bytes_max: 2 << 30,
        cache: "write back".to_owned(),
        queues,
        features: 0,
    };
    // Two CPUs cannot use four queues.
    let expected = [
        (disk_info("SUIMON-0001", 1), EVENT_IDX | INDIRECT, PACKED),
        (disk_info("twenty-bytes-of-name", 2), EVENT_IDX | INDIRECT, PACKED),
        (disk_info("", 1), EVENT_IDX | INDIRECT | PACKED, 0),
        (disk_info("", 2), EVENT_IDX | INDIRECT | PACKED, 0),
        (disk_info("", 1), 0, EVENT_IDX | INDIRECT | PACKED),
        (
            GuestDiskInfo {
                is_read_only: true,
                discard_bytes_max: 0,
                zeroes_bytes_max: 0,
                ..disk_info("", 1)
            },
            EVENT_IDX | INDIRECT,
            PACKED,
        ),
        (GuestDiskInfo { logical_sector: 4096, ..disk_info("", 1) }, EVENT_IDX | INDIRECT, PACKED),
    ];
    for (name, (expected, present, absent)) in (b'a'..).zip(expected) {
        let name = format!("vd{}", char::from(name));
        let info = vm.disk(&name).unwrap();
        assert_eq!((info.features & present, info.features & absent), (present, 0), "{name}");
        assert_eq!(GuestDiskInfo { features: 0, ..info }, expected, "{name}");
        if !expected.is_read_only {
            vm.begin_verifying(&format!("/dev/{name}"), 1, "").unwrap();
            println!("{name}: {}", vm.finish_verifying(PATIENCE).unwrap());
        }
    }
    vm.run("cd /tmp && dd if=/dev/vdf of=copy bs=1M count=4 && ! dd if=copy of=/dev/vdf").unwrap();
}

fn a_guest_chooses_whether_its_writes_are_durable() {
    let rig = Rig::new().unwrap();
    let mut disk = ServedDisk::raw(&rig, "disk", 64 * MIB, "--count");
    let mut vm = guest(&rig, vec![disk.disk("")], &[]);
    let durable = |disk: &mut ServedDisk| {
        disk.ask("count", "durable writes: ").trim_end_matches('.').parse::<u64>().unwrap()
    };
    let write = "dd if=/dev/urandom of=/dev/vda bs=4096 count=100 oflag=direct";
    vm.run(write).unwrap();
    assert_eq!(durable(&mut disk), 0);
    vm.run("echo write through >/sys/block/vda/cache_type").unwrap();
    assert_eq!(vm.disk("vda").unwrap().cache, "write through");
    vm.run(write).unwrap();
    assert_eq!(durable(&mut disk), 100);
    vm.run("echo write back >/sys/block/vda/cache_type").unwrap();
    vm.run(write).unwrap();
    assert_eq!((durable(&mut disk), vm.disk("vda").unwrap().cache.as_str()), (100, "write back"));
    // The process cannot know the cache mode of a VM that reconnects to it.
    vm.run("echo write through >/sys/block/vda/cache_type").unwrap();
    disk.kill_and_restart(&rig);
    vm.run(write).unwrap();
    assert_eq!(durable(&mut disk), 100);
    vm.check_disks().unwrap();
}

fn a_file_system_on_a_vhdx_is_intact_and_returns_unused_space() {
    let rig = Rig::new().unwrap();
    let file = rig.file("disk.vhdx");
    let path = file.to_str().unwrap();
    let options = "subformat=dynamic,block_size=1048576";
    run(&["qemu-img", "create", "-q", "-f", "vhdx", "-o", options, path, "256M"]).unwrap();
    let disk = ServedDisk::start(&rig, "disk", &file, "");
    let mut vm = guest(&rig, vec![disk.disk("")], &["mkfs.ext4", "e2fsck"]);
    let mut run_ok = |command: &str| {
        let output = vm.run_any(command, PATIENCE).unwrap();
        assert!(output.is_ok(), "{command}: {}", output.stdout);
    };
    run_ok("dd if=/dev/urandom of=/dev/vda bs=1M count=96 oflag=direct && sync");
    let full = allocated(&file);
    assert!(full > 96 * MIB, "{full}");
    // Space is freed after the change is durable, which the guest's flush causes.
    let flush = "dd if=/bin/busybox of=/dev/vda bs=4096 count=1 conv=fsync";
    run_ok(&format!("blkdiscard /dev/vda && {flush}"));
    wait_until("released space", PATIENCE, || Ok(allocated(&file) < 16 * MIB)).unwrap();
    run_ok("mkfs.ext4 -q -E nodiscard /dev/vda && mkdir /mnt && mount /dev/vda /mnt");
    let empty = allocated(&file);
    run_ok(
        "dd if=/dev/urandom of=/mnt/large bs=1M count=64 && md5sum /mnt/large >/tmp/sum && sync",
    );
    assert!(allocated(&file) > empty + 48 * MIB);
    run_ok("echo 3 >/proc/sys/vm/drop_caches; md5sum -c /tmp/sum");
    run_ok("cp -r /usr /mnt/ && diff -r /usr /mnt/usr && rm /mnt/large && sync && fstrim /mnt");
    run_ok("echo more >/mnt/more && sync");
    wait_until("released space", PATIENCE, || Ok(allocated(&file) < empty + 32 * MIB)).unwrap();
    run_ok("umount /mnt && e2fsck -fn /dev/vda");
    vm.check_disks().unwrap();
    drop(vm);
    disk.close();
    run(&["qemu-img", "check", "-f", "vhdx", path]).unwrap();
}

fn a_guest_starts_from_its_disk_and_fio_finds_there_what_it_wrote() {
    let rig = Rig::new().unwrap();
    let image = rig.file("root.raw");
    make_root_disk(&rig, &image, 512 * MIB, &tools(&["fio", "e2fsck"])).unwrap();
    let root = ServedDisk::start(&rig, "root", &image, "--queues 2");
    let data = ServedDisk::raw(&rig, "data", 64 * MIB, "");
    let mut root_disk = root.disk("");
    root_disk.queues = 2;
    let spec = GuestSpec {
        name: "vm".to_owned(),
        disks: vec![root_disk, data.disk(",packed=on")],
        boot: Boot::RootDisk,
        cpus: 2,
        ..GuestSpec::default()
    };
    let mut vm = Guest::start(&rig, &spec).unwrap();
    assert!(vm.run("mount").unwrap().contains("/dev/vda on / type ext4"));
    let common = "--ioengine=libaio --direct=1 --verify=crc32c --output-format=terse --size=16m";
    let jobs = [
        ("--filename=/dev/vdb", "--rw=randwrite --bssplit=512/30:4k/40:64k/30 --iodepth=64"),
        ("--filename=/dev/vdb", "--rw=randrw --bs=4k --iodepth=8 --fsync=16 --io_size=4m"),
        ("--filename=/root/file", "--rw=randwrite --bs=4k --iodepth=32 --fsync=32"),
    ];
    for (number, (target, job)) in jobs.iter().enumerate() {
        let command = format!("fio --name=job{number} {common} {target} {job}");
        let output = vm.run_any(&command, PATIENCE).unwrap();
        assert!(output.is_ok(), "{command}: {}", output.stdout);
    }
    vm.run("cd / && sync && mount -o remount,ro / && e2fsck -fn /dev/vda").unwrap();
    drop(vm);
    let image = root.close();
    run(&["e2fsck", "-fn", image.to_str().unwrap()]).unwrap();
}

#[test]
fn firmware_starts_from_a_disk_over_vhost_user_and_over_nbd() {
    let rig = Rig::new().unwrap();
    let image = rig.file("boot.raw");
    std::fs::File::create(&image).unwrap().set_len(MIB).unwrap();
    let message = "read by the firmware";
    make_boot_sector(&image, message).unwrap();
    let nbd = rig.path("nbd");
    let served_disk = ServedDisk::start(&rig, "boot", &image, &format!("--nbd {nbd}"));
    for mut disk in [
        served_disk.disk(""),
        served_disk.disk(",packed=on"),
        GuestDisk::on_ide(format!("nbd+unix:///disk?socket={nbd}")),
    ] {
        disk.properties += ",bootindex=0";
        let spec = GuestSpec {
            name: "boot".to_owned(),
            disks: vec![disk],
            boot: Boot::Firmware,
            ..GuestSpec::default()
        };
        let vm = Guest::start(&rig, &spec).unwrap();
        wait_until("message of the boot sector", PATIENCE, || Ok(vm.console().contains(message)))
            .unwrap();
    }
}

fn a_guest_without_virtio_has_its_disk_on_ide() {
    let rig = Rig::new().unwrap();
    let nbd = rig.path("nbd");
    let served_disk = ServedDisk::raw(&rig, "disk", 64 * MIB, &format!("--nbd {nbd}"));
    let disk = GuestDisk::on_ide(format!("nbd+unix:///disk?socket={nbd}"));
    let mut vm = guest(&rig, vec![disk], &[]);
    wait_until("disk on IDE", PATIENCE, || Ok(vm.run_any("test -b /dev/sda", PATIENCE)?.is_ok()))
        .unwrap();
    assert_eq!(vm.run("cat /sys/block/sda/size").unwrap(), (64 * MIB / 512).to_string());
    vm.begin_verifying("/dev/sda", 3, "256 4").unwrap();
    println!("{}", vm.finish_verifying(PATIENCE).unwrap());
    vm.check_disks().unwrap();
    drop(vm);
    served_disk.close();
}

fn a_guest_that_runs_sees_its_disk_grow() {
    let rig = Rig::new().unwrap();
    let mut disk = ServedDisk::raw(&rig, "disk", 128 * MIB, "--bytes 67108864");
    let mut vm = guest(&rig, vec![disk.disk("")], &[]);
    assert_eq!(vm.disk("vda").unwrap().bytes, 64 * MIB);
    let write_beyond = "dd if=/bin/busybox of=/dev/vda bs=1M seek=100 count=1 oflag=direct";
    assert!(!vm.run_any(write_beyond, PATIENCE).unwrap().is_ok());
    disk.ask(&format!("resize {}", 128 * MIB), "resized to ");
    wait_until("disk that has grown", PATIENCE, || Ok(vm.disk("vda")?.bytes == 128 * MIB)).unwrap();
    vm.run(write_beyond).unwrap();
    vm.begin_verifying("/dev/vda", 1, "32768").unwrap();
    vm.finish_verifying(PATIENCE).unwrap();
    vm.check_disks().unwrap();
}

mod full {
    #[test]
    fn a_guest_starts_from_its_disk_and_fio_finds_there_what_it_wrote() {
        super::a_guest_starts_from_its_disk_and_fio_finds_there_what_it_wrote();
    }

    #[test]
    fn a_file_system_on_a_vhdx_is_intact_and_returns_unused_space() {
        super::a_file_system_on_a_vhdx_is_intact_and_returns_unused_space();
    }

    #[test]
    fn a_guest_chooses_whether_its_writes_are_durable() {
        super::a_guest_chooses_whether_its_writes_are_durable();
    }

    #[test]
    fn a_guest_without_virtio_has_its_disk_on_ide() {
        super::a_guest_without_virtio_has_its_disk_on_ide();
    }

    #[test]
    fn a_guest_sees_the_properties_of_the_disk_with_every_ring_format() {
        super::a_guest_sees_the_properties_of_the_disk_with_every_ring_format();
    }

    #[test]
    fn a_guest_that_runs_sees_its_disk_grow() {
        super::a_guest_that_runs_sees_its_disk_grow();
    }
}
