//! A full store with a VM that Suimon does not manage.

use std::time::Duration;

use suimon_rig::{Daemon, Guest, GuestDisk, GuestSpec, Mounted, NbdClient, Rig, run, wait_until};

use super::{FillerFile, MIB, PATIENCE, wait_queued};

/// Writes of a VM that Suimon does not manage are queued over vhost-user, and the VM can be ended
/// meanwhile.
fn a_guest_of_another_qemu_waits_for_space_and_can_be_ended() {
    let rig = Rig::new().unwrap();
    let store = Mounted::tmpfs("24m", &rig.path("store")).unwrap();
    let path = store.path();
    let host = format!(
        "[[store]]\nname = \"s\"\npath = \"{path}\"\n[[disk]]\nname = \"d\"\nstore = \"s\"\n\
         format = \"vhdx\"\nkind = \"dynamic\"\nsize_bytes = \"64 MiB\"\n\
         vhost_user = {{ socket = \"{}\" }}\nnbd = {{ socket = \"{}\" }}\n",
        rig.path("d.sock"),
        rig.path("nbd.sock")
    );
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    let spec = || GuestSpec {
        name: "other".to_owned(),
        disks: vec![GuestDisk::new(rig.path("d.sock"))],
        ..GuestSpec::default()
    };
    let mut guest = Guest::start(&rig, &spec()).unwrap();
    let write = |seek: u32| {
        format!(
            "(sleep 1; yes {seek} | dd of=/dev/vda bs=64k count=64 seek={seek} iflag=fullblock \
             oflag=direct conv=notrunc,fsync 2>/tmp/log; echo $? >/tmp/done) </dev/null \
             >/dev/null 2>&1 &"
        )
    };
    let filler = FillerFile::new(path, MIB);
    guest.run(&format!("rm -f /tmp/done; {}", write(0))).unwrap();
    wait_queued(&daemon, "d");
    // The guest continues and can read.
    guest
        .run("dd if=/dev/vda bs=64k count=1 iflag=direct of=/dev/null && [ ! -e /tmp/done ]")
        .unwrap();
    std::thread::sleep(Duration::from_secs(3));
    wait_queued(&daemon, "d");
    filler.remove();
    wait_until("the guest to have written", PATIENCE * 3, || {
        Ok(guest.run_any("[ -s /tmp/done ]", PATIENCE)?.is_ok())
    })
    .unwrap();
    let log = guest.run("cat /tmp/log").unwrap();
    assert_eq!(guest.run("cat /tmp/done").unwrap(), "0", "{log}");
    guest.run("yes 0 | head -c 4194304 >/tmp/a; dd if=/dev/vda bs=64k count=64 2>/dev/null | cmp - /tmp/a").unwrap();
    guest.check_disks().unwrap();
    // The VM is ended with queued writes; none of them remains queued.
    let filler = FillerFile::new(path, 0);
    guest.run(&format!("rm -f /tmp/done; {}", write(512))).unwrap();
    wait_queued(&daemon, "d");
    drop(guest);
    wait_until("no queued requests", PATIENCE, || {
        let disk_status = daemon.json(&["disk", "show", "d"])?;
        Ok(disk_status["full"]["queued_requests"].as_u64().unwrap_or(0) == 0)
    })
    .unwrap();
    filler.remove();
    let mut client = NbdClient::connect(&rig.path("nbd.sock"), "d").unwrap();
    let mut content = vec![0; 512];
    client.read(0, &mut content).unwrap();
    assert_eq!(content, b"0\n".repeat(256));
    assert!(daemon.stop().unwrap().success());
    run(&["qemu-img", "check", "-f", "vhdx", &format!("{path}/d.vhdx")]).unwrap();
    drop(store);
}

mod full {
    #[test]
    fn a_guest_of_another_qemu_waits_for_space_and_can_be_ended() {
        super::a_guest_of_another_qemu_waits_for_space_and_can_be_ended();
    }
}
